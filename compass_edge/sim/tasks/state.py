"""State Recall: what a step needs was seen earlier and is hidden now."""

from __future__ import annotations

from compass_edge.sim.layout import Layout
from compass_edge.sim.script import carry, lift, press, watch
from compass_edge.sim.tasks.draft import PAINTS, SIDES, Draft, of, times

_ROW = (-0.22, 0.0, 0.22)


def put_back(table: Layout) -> Draft:
    """S1: to the centre, press, and back to the mat it came from, of four that look alike."""
    paint, ground, cap = table.dice.shuffled(PAINTS)[:3]
    corners = {
        "back left": (-0.08, -0.22),
        "back right": (-0.08, 0.22),
        "front left": (0.18, -0.22),
        "front right": (0.18, 0.22),
    }
    mats = {name: table.place(table.mat(*at, ground), f"the {name} {ground} mat") for name, at in corners.items()}
    centre = table.place(table.mat(0.05, 0.0, "white", "centre"), "the white mat")
    button = table.button(0.22, 0.0, cap)
    home = mats[table.dice.choice(tuple(mats))]
    block, what = table.block(home, paint), f"the {paint} block"
    steps = [
        carry(block, what, home.name, centre, ["state"], origin=home.name),
        press(button, f"the {cap} button", ["state"], f", with {what} waiting on the white mat", pressed=0),
        carry(
            block, what, "the white mat", home, ["state"], ", where it was at the start", origin=home.name, pressed=1
        ),
    ]
    instruction = f"Move the {paint} block onto the white mat, press the {cap} button once, then put the block back on the mat it came from."
    return Draft(instruction, steps, [*mats.values(), centre])


def round_trips(table: Layout) -> Draft:
    """S2: each block onto the green mat and back, from left to right."""
    paint, ground, goal_paint = table.dice.shuffled(PAINTS)[:3]
    mats = [
        table.place(table.mat(-0.06, y, ground), f"the {side} {ground} mat")
        for side, y in zip(SIDES, _ROW, strict=True)
    ]
    goal = table.place(table.mat(0.16, 0.0, goal_paint, "goal"), f"the {goal_paint} mat")
    blocks = [table.block(mat, paint) for mat in mats]
    steps = []
    for index, (block, mat, side) in enumerate(zip(blocks, mats, SIDES, strict=True)):
        done = list(SIDES[:index])
        steps += [
            carry(block, f"the {side} {paint} block", mat.name, goal, ["sequence", "recurrence"], trips_done=done),
            carry(block, f"the {paint} block", goal.name, mat, ["state", "recurrence"], ", where it came from",
                  origin=mat.name, trips_done=done),
        ]  # fmt: skip
    instruction = f"Move each {paint} block onto the {goal_paint} mat and back to its original position, one at a time, from left to right."
    return Draft(instruction, steps, [*mats, goal])


def covers(table: Layout) -> Draft:
    """S3: cover three blocks, then look under the covers in the order of the colours beneath."""
    lid, *paints = table.dice.shuffled(PAINTS)[:4]
    spots = [table.spot(0.10, y, f"the {side} place") for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)]
    stands = [
        table.spot(-0.10, y, f"the back of the table, {side}") for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)
    ]
    hidden = table.dice.shuffled(paints)
    for spot, paint in zip(spots, hidden, strict=True):
        table.block(spot, paint, f"block {paints.index(paint)}", 0.016)
    lids = [table.cover(stand, lid) for stand in stands]
    steps = [
        carry(cover, f"the {side} {lid} cover", stand.name, spot, ["sequence"],
              f", over the {paint} block", covered=list(hidden[:index]))
        for index, (cover, side, stand, spot, paint) in enumerate(zip(lids, SIDES, stands, spots, hidden, strict=True))
    ]  # fmt: skip
    for index, paint in enumerate(paints):
        at = hidden.index(paint)
        steps.append(
            lift(lids[at], f"the {SIDES[at]} {lid} cover", spots[at], ["state", "sequence"],
                 f", to look at the {paint} block under it{of(index + 1, 3)}", hidden=paint, looked_at=paints[:index])
        )  # fmt: skip
    order = f"{paints[0]}, {paints[1]}, {paints[2]}"
    instruction = (
        f"Cover the three blocks with the {lid} covers from left to right, then lift each cover and put it back over its block, "
        f"in the order {order} of the blocks beneath."
    )
    return Draft(instruction, steps, [*spots, *stands], retreat=1.0)


def shown_colour(table: Layout) -> Draft:
    """S4: the lamp shows a colour, once; its button and its mat are meant."""
    paint, *pair = table.dice.shuffled(PAINTS)[:3]
    table.lamp(-0.13, -0.24)
    buttons = {
        c: table.button(-0.02, y, c, f"button {i}") for i, (c, y) in enumerate(zip(pair, (-0.13, 0.13), strict=True))
    }
    mats = {
        c: table.place(table.mat(0.18, y, c, f"mat {i}"), f"the {c} mat")
        for i, (c, y) in enumerate(zip(pair, (0.2, -0.2), strict=True))
    }
    start = table.place(table.mat(0.18, 0.0, "white", "start"), "the white mat")
    block, what = table.block(start, paint), f"the {paint} block"
    shown = table.dice.choice(pair)
    told = ", the colour that the lamp showed"
    steps = [
        watch([shown], "Wait until the lamp has shown its colour and is dark again.", ["state"], shown=shown),
        press(buttons[shown], f"the {shown} button", ["state"], told, shown=shown),
        carry(block, what, start.name, mats[shown], ["state"], told, shown=shown, pressed=1),
        carry(
            block,
            what,
            mats[shown].name,
            start,
            ["state", "recurrence"],
            ", where it came from",
            shown=shown,
            pressed=1,
        ),
    ]
    instruction = (
        "The lamp shows a colour once. Press the button of that colour, carry the block to the mat of that colour, and bring it "
        "back to the white mat."
    )
    return Draft(instruction, steps, [start, *mats.values()])


def blinks(table: Layout) -> Draft:
    """S5: press as often as the lamp has blinked."""
    cap, light = table.dice.shuffled(PAINTS)[:2]
    table.lamp(-0.10, -0.22)
    button = table.button(0.10, 0.06, cap)
    count = table.dice.whole(2, 5)
    steps = [
        watch(
            [light] * count, f"Wait until the lamp has blinked {times(count)} and stays dark.", ["state"], blinks=count
        )
    ]
    steps += [
        press(button, f"the {cap} button", ["state", "recurrence"], f" (press {i + 1} of {count}, as the lamp blinked {times(count)})",
              blinks=count, occurrence=i + 1, of=count)
        for i in range(count)
    ]  # fmt: skip
    return Draft(
        f"The lamp blinks several times. Then press the {cap} button as many times as the lamp blinked.", steps, []
    )


def swap_twice(table: Layout) -> Draft:
    """S6: two blocks that look alike change places, and change back."""
    paint, ground = table.dice.shuffled(PAINTS)[:2]
    mats = [
        table.place(table.mat(0.05, y, ground), f"the {side} {ground} mat")
        for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)
    ]
    left, spare, right = mats
    one, other = table.block(left, paint), table.block(right, paint)
    steps, what = [], f"the {paint} block"
    for swap, (first, second) in enumerate(((one, other), (other, one))):
        note = f" ({'first' if swap == 0 else 'second'} swap, move {{}} of 3)"
        moves = ((first, left, spare), (second, right, left), (first, spare, right))
        steps += [
            carry(
                block,
                what,
                origin.name,
                to,
                ["state", "sequence", "recurrence"],
                note.format(index + 1),
                swap=swap + 1,
                move=index + 1,
            )
            for index, (block, origin, to) in enumerate(moves)
        ]
    instruction = f"Swap the two {paint} blocks using the empty middle mat, moving the left block first, then swap them back the same way."
    return Draft(instruction, steps, mats)


def boxes(table: Layout) -> Draft:
    """S7: which box holds what cannot be seen. What is left outside can: a control."""
    first, second, third, ground = table.dice.shuffled(PAINTS)[:4]
    pair = [table.place(table.box(-0.02, y), f"the {side} gray box") for side, y in (("left", -0.15), ("right", 0.15))]
    names = table.dice.shuffled((first, second, third))
    mats = [
        table.place(table.mat(0.17, y, ground), f"the {side} {ground} mat")
        for side, y in zip(SIDES, (-0.15, 0.0, 0.15), strict=True)
    ]
    blocks = {paint: table.block(mat, paint, f"block {(first, second, third).index(paint)}", 0.018)
              for paint, mat in zip(names, mats, strict=True)}  # fmt: skip
    one, other = table.dice.shuffled(pair)
    at = {paint: mat.name for paint, mat in zip(names, mats, strict=True)}
    steps = [
        carry(blocks[first], f"the {first} block", at[first], one, ["state"], boxes={}),
        carry(blocks[second], f"the {second} block", at[second], other, ["state"], ", the empty one", boxes={first: one.name}),
        carry(blocks[third], f"the {third} block", at[third], one, ["state"], f", the one that holds the {first} block",
              boxes={first: one.name, second: other.name}),
    ]  # fmt: skip
    instruction = (
        f"Put the {first} block into one box and the {second} block into the other, then the {third} block into the box that "
        f"holds the {first} block."
    )
    return Draft(instruction, steps, [*pair, *mats])


def search(table: Layout) -> Draft:
    """S8: look under three covers, there and back, then mark the one that hides a colour."""
    lid, marker, *paints = table.dice.shuffled(PAINTS)[:5]
    wanted = paints[0]
    spots = [table.spot(0.02, y, f"the {side} place") for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)]
    fronts = [
        table.spot(0.14, y, f"the table in front of the {side} cover")
        for side, y in zip(SIDES, (-0.2, 0.0, 0.2), strict=True)
    ]
    hidden = table.dice.shuffled(paints)
    for spot, paint in zip(spots, hidden, strict=True):
        table.block(spot, paint, f"block {paints.index(paint)}", 0.016)
    lids = [table.cover(spot, lid) for spot in spots]
    start = table.spot(0.21, -0.1, "the front of the table")
    block = table.block(start, marker, "marker")
    at = hidden.index(wanted)
    way = (0, 1, 2, 1, 0)
    steps = [
        lift(lids[cover], f"the {SIDES[cover]} {lid} cover", spots[cover], ["sequence", "state"],
             f", to see what is under it{of(index + 1, len(way))}", looked_at=[SIDES[one] for one in way[:index]], hides=hidden[cover])
        for index, cover in enumerate(way)
    ]  # fmt: skip
    steps.append(
        carry(
            block,
            f"the {marker} block",
            start.name,
            fronts[at],
            ["state"],
            f", which hides the {wanted} block",
            hides=dict(zip(SIDES, hidden, strict=True)),
        )
    )
    instruction = (
        f"Look under the three covers from left to right and back to the left one, putting each back, then place the {marker} "
        f"block in front of the cover that hides the {wanted} block."
    )
    return Draft(instruction, steps, [*spots, *fronts, start])
