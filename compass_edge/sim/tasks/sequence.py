"""Sequence Tracking: steps in a fixed order, and a frame does not show which of them are done."""

from __future__ import annotations

from dataclasses import replace

from compass_edge.sim.layout import Layout
from compass_edge.sim.script import carry, lift, press, tap, watch
from compass_edge.sim.tasks.draft import PAINTS, SIDES, Draft, of
from compass_edge.sim.things import Place, Thing


def buttons(table: Layout) -> Draft:
    """Q1: three buttons, six presses."""
    caps = table.dice.shuffled(PAINTS)[:3]
    where = table.dice.shuffled((-0.2, 0.0, 0.2))
    made = [
        table.button(0.06, y, cap, f"button {index}") for index, (cap, y) in enumerate(zip(caps, where, strict=True))
    ]
    order = (0, 1, 2, 1, 0, 2)
    names = [caps[index] for index in order]
    steps = [
        press(made[index], f"the {caps[index]} button", ["sequence", "recurrence"],
              f" (press {i + 1} of 6, after {', '.join(names[:i]) or 'none'})", position=i + 1, done=names[:i])
        for i, index in enumerate(order)
    ]  # fmt: skip
    return Draft(f"Press the buttons in the order {', '.join(names)}.", steps, [])


def tubes(table: Layout) -> Draft:
    """Q2: three tubes into a rack in order. The rack shows what is done: a control."""
    caps = table.dice.shuffled(PAINTS)[:3]
    stand = table.rack(-0.06, -0.17, 3, "brown", "stand")
    rack = table.rack(0.12, 0.14, 3, "black", "rack")
    order = table.dice.shuffled((0, 1, 2))
    starts = [table.slot(stand, index) for index in range(3)]
    goals = [table.slot(rack, index) for index in range(3)]
    made = {index: table.tube(start, caps[index], f"tube {index}") for index, start in zip(order, starts, strict=True)}
    steps = [
        carry(made[index], f"the tube with the {caps[index]} cap", starts[order.index(index)].name, goals[index], ["sequence"],
              position=index + 1, done=caps[:index])
        for index in range(3)
    ]  # fmt: skip
    instruction = f"Insert the three tubes into the black rack in the order {', '.join(caps)}, from the left slot to the right slot."
    return Draft(instruction, steps, [*starts, *goals])


def slots(table: Layout) -> Draft:
    """Q3: one tube through the slots 1, 2, 3, 2, 1."""
    cap = table.dice.choice(PAINTS)
    rack = table.rack(0.06, 0.0, 3, "black", "rack")
    places = [table.slot(rack, index) for index in range(3)]
    tube, what = table.tube(places[0], cap), f"the tube with the {cap} cap"
    legs = ((0, 1), (1, 2), (2, 1), (1, 0))
    steps = [
        carry(tube, what, places[a].name, places[b], ["sequence"], f" (move {index + 1} of 4)", leg=index + 1)
        for index, (a, b) in enumerate(legs)
    ]
    instruction = f"Move the tube with the {cap} cap from the left slot to the middle, to the right, to the middle, and to the left slot again."
    return Draft(instruction, steps, places)


def taps(table: Layout) -> Draft:
    """Q4: four mats, tapped in order; a tap leaves no trace."""
    paints = table.dice.shuffled(PAINTS)[:4]
    corners = table.dice.shuffled(((-0.04, -0.15), (-0.04, 0.15), (0.16, -0.15), (0.16, 0.15)))
    mats = [
        table.mat(*at, paint, f"mat {index}") for index, (at, paint) in enumerate(zip(corners, paints, strict=True))
    ]
    steps = [
        tap(mat, f"the {paint} mat", ["sequence"], f" (tap {index + 1} of 4, after {', '.join(paints[:index]) or 'none'})",
            position=index + 1, done=paints[:index])
        for index, (mat, paint) in enumerate(zip(mats, paints, strict=True))
    ]  # fmt: skip
    return Draft(
        f"Tap the four mats in the order {', '.join(paints)}.",
        steps,
        [table.place(m, f"the {m.colour} mat") for m in mats],
        retreat=1.0,
    )


def confirmed_swap(table: Layout) -> Draft:
    """Q5: two blocks change places by way of an empty mat and change back, each swap confirmed by a press."""
    one, other, ground, cap = table.dice.shuffled(PAINTS)[:4]
    mats = [
        table.place(table.mat(-0.02, y, ground), f"the {side} {ground} mat")
        for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)
    ]
    left, spare, right = mats
    button = table.button(0.16, 0.0, cap)
    first, second = table.block(left, one, "block 0"), table.block(right, other, "block 1")
    swaps = (
        ((first, one, left, spare), (second, other, right, left), (first, one, spare, right)),
        ((first, one, right, spare), (second, other, left, right), (first, one, spare, left)),
    )
    steps = []
    for index, moves in enumerate(swaps):
        swap = f"swap {index + 1} of 2"
        steps += [
            carry(block, f"the {paint} block", origin.name, to, ["sequence", "state"], f" ({swap}, move {number} of 3)",
                  swaps_done=index, moves_done=number - 1)
            for number, (block, paint, origin, to) in enumerate(moves, start=1)
        ]  # fmt: skip
        steps.append(
            press(button, f"the {cap} button", ["sequence", "recurrence"], f" to confirm {swap}", swaps_done=index)
        )
    instruction = (
        f"Swap the {one} block and the {other} block using the empty mat, starting with the {one} block, and press the {cap} button; "
        "then swap them back the same way and press the button again."
    )
    return Draft(instruction, steps, mats)


def stack(table: Layout) -> Draft:
    """Q6: build a tower of three and take it down again."""
    top, middle, bottom, ground = table.dice.shuffled(PAINTS)[:4]
    mats = [
        table.place(table.mat(0.05, y, ground), f"the {side} {ground} mat")
        for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)
    ]
    order = table.dice.shuffled((0, 1, 2))
    homes = {paint: mats[index] for paint, index in zip((top, middle, bottom), order, strict=True)}
    made = {
        paint: table.block(homes[paint], paint, role)
        for paint, role in ((top, "top"), (middle, "middle"), (bottom, "bottom"))
    }
    on_bottom = _above(homes[bottom], f"the {bottom} block", 1)
    on_middle = _above(homes[bottom], f"the {middle} block", 2)
    steps = [
        carry(made[middle], f"the {middle} block", homes[middle].name, on_bottom, ["sequence"], phase="up"),
        carry(made[top], f"the {top} block", homes[top].name, on_middle, ["sequence"], phase="up"),
        carry(
            made[top],
            f"the {top} block",
            on_middle.name,
            homes[top],
            ["sequence", "state"],
            ", where it was at the start",
            phase="down",
            origin=homes[top].name,
        ),
        carry(
            made[middle],
            f"the {middle} block",
            on_bottom.name,
            homes[middle],
            ["sequence", "state"],
            ", where it was at the start",
            phase="down",
            origin=homes[middle].name,
        ),
    ]
    instruction = (
        f"Stack the {middle} block on the {bottom} block and the {top} block on top, then unstack them back onto the mats they "
        "came from."
    )
    return Draft(instruction, steps, [*mats, on_bottom, on_middle])


def lamp_phases(table: Layout) -> Draft:
    """Q7: lamp on, block over, lamp off, block back, lamp on."""
    paint, here, there, cap, light = table.dice.shuffled(PAINTS)[:5]
    table.lamp(-0.13, -0.24)
    button = table.button(0.18, 0.0, cap)
    start = table.place(table.mat(0.04, -0.18, here, "start"), f"the {here} mat")
    goal = table.place(table.mat(0.04, 0.18, there, "goal"), f"the {there} mat")
    block, what = table.block(start, paint), f"the {paint} block"
    toggle = [f" to turn the lamp {state}" for state in ("on", "off", "on")]
    steps = [
        press(button, f"the {cap} button", ["sequence"], toggle[0], phase=1, lamp="off"),
        carry(block, what, start.name, goal, ["sequence"], " while the lamp is on", phase=2, lamp="on"),
        press(button, f"the {cap} button", ["sequence"], toggle[1], phase=3, lamp="on"),
        carry(block, what, goal.name, start, ["sequence"], " while the lamp is off", phase=4, lamp="off"),
        press(button, f"the {cap} button", ["sequence", "recurrence"], toggle[2], phase=5, lamp="off"),
    ]
    instruction = (
        f"Turn the lamp on with the {cap} button, carry the {paint} block to the {there} mat, turn the lamp off, bring the block "
        "back, and turn the lamp on again."
    )
    return Draft(instruction, steps, [start, goal], {button.name: light})


def shown_order(table: Layout) -> Draft:
    """Q8: the lamp shows three colours; the blocks are lifted in that order."""
    ground, *paints = table.dice.shuffled(PAINTS)[:4]
    table.lamp(-0.12, -0.24)
    mats = [
        table.place(table.mat(0.08, y, ground), f"the {side} {ground} mat")
        for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)
    ]
    made = {
        paint: (table.block(mat, paint, "block"), mat)
        for paint, mat in zip(table.dice.shuffled(paints), mats, strict=True)
    }
    steps = [watch(paints, "Wait until the lamp has shown three colours and stays dark.", ["state"], shown=paints)]
    steps += [
        lift(
            *_lifted(made, paint),
            ["sequence", "state"],
            f"{of(index + 1, 3)}, as the lamp showed",
            shown=paints,
            done=paints[:index],
        )
        for index, paint in enumerate(paints)
    ]
    return Draft(
        "The lamp shows three colours. Then lift the blocks of these colours in the same order, putting each back.",
        steps,
        mats,
    )


def _lifted(made: dict[str, tuple[Thing, Place]], paint: str) -> tuple[Thing, str, Place]:
    block, mat = made[paint]
    return block, f"the {paint} block", mat


def _above(place: Place, name: str, blocks: int) -> Place:
    return replace(place, name=name, base=place.base + blocks * 0.044)
