"""Recurrence Disambiguation: the same thing happens again and again, and its frames look alike."""

from __future__ import annotations

from compass_edge.sim.layout import Layout
from compass_edge.sim.script import carry, lift, press
from compass_edge.sim.tasks.draft import PAINTS, SIDES, Draft, of, times


def presses(table: Layout, count: int | None = None) -> Draft:
    """R1: one button, N presses."""
    cap = table.dice.choice(PAINTS)
    button = table.button(0.10, table.dice.uniform(-0.1, 0.1), cap)
    count = count or table.dice.whole(5, 10)
    steps = [
        press(button, f"the {cap} button", ["recurrence"], f"{of(i + 1, count)}", occurrence=i + 1, of=count)
        for i in range(count)
    ]
    return Draft(f"Press the {cap} button {times(count)}.", steps, [], variant=str(count))


def three_buttons(table: Layout) -> Draft:
    """R2: left three times, middle four times, right once."""
    caps = table.dice.shuffled(PAINTS)[:3]
    made = [
        table.button(0.06, y, cap, f"button {i}") for i, (cap, y) in enumerate(zip(caps, (-0.2, 0.0, 0.2), strict=True))
    ]
    steps = [
        press(made[index], f"the {SIDES[index]} button", ["recurrence", "sequence"], of(i + 1, count), button=SIDES[index],
              occurrence=i + 1, of=count)
        for index, count in enumerate((3, 4, 1)) for i in range(count)
    ]  # fmt: skip
    return Draft(
        "Press the leftmost button 3 times, then the middle button 4 times, then the rightmost button once.", steps, []
    )


def shuttle(table: Layout) -> Draft:
    """R3: there and back, four times."""
    paint, here, there = table.dice.shuffled(PAINTS)[:3]
    start = table.place(table.mat(0.04, -0.16, here, "start"), f"the {here} mat")
    goal = table.place(table.mat(0.04, 0.16, there, "goal"), f"the {there} mat")
    block, what = table.block(start, paint), f"the {paint} block"
    steps = []
    for trip in range(4):
        note = f" (trip {trip + 1} of 4)"
        steps += [
            carry(block, what, start.name, goal, ["recurrence"], note, occurrence=trip + 1, of=4, leg="there"),
            carry(block, what, goal.name, start, ["recurrence"], note, occurrence=trip + 1, of=4, leg="back"),
        ]
    return Draft(
        f"Carry the {paint} block from the {here} mat to the {there} mat and back, 4 times.", steps, [start, goal]
    )


def lifts(table: Layout, count: int = 3) -> Draft:
    """R4: a block up and down, three times."""
    paint, ground = table.dice.shuffled(PAINTS)[:2]
    mat = table.place(table.mat(0.06, table.dice.uniform(-0.12, 0.12), ground), f"the {ground} mat")
    block = table.block(mat, paint)
    steps = [
        lift(block, f"the {paint} block", mat, ["recurrence"], of(i + 1, count), occurrence=i + 1, of=count)
        for i in range(count)
    ]
    return Draft(
        f"Lift the {paint} block and put it back on the {ground} mat, {times(count)}.", steps, [mat], variant=str(count)
    )


def many_lifts(table: Layout) -> Draft:
    """R5: the same, six to eight times."""
    return lifts(table, table.dice.whole(6, 8))


def dips(table: Layout) -> Draft:
    """R6: a tube out of its slot and back, four to six times."""
    cap = table.dice.choice(PAINTS)
    rack = table.rack(0.08, table.dice.uniform(-0.08, 0.08), 3, "black", "rack")
    slot = table.slot(rack, table.dice.whole(0, 2))
    tube, count = table.tube(slot, cap), table.dice.whole(4, 6)
    what = f"the tube with the {cap} cap"
    steps = [lift(tube, what, slot, ["recurrence"], of(i + 1, count), occurrence=i + 1, of=count) for i in range(count)]
    return Draft(f"Take {what} out of its slot and put it back, {times(count)}.", steps, [slot], variant=str(count))


def alternate(table: Layout) -> Draft:
    """R7: two blocks in turn, three times each."""
    one, other, ground = table.dice.shuffled(PAINTS)[:3]
    mats = [
        table.place(table.mat(0.06, y, ground), f"the {side} {ground} mat")
        for side, y in (("left", -0.14), ("right", 0.14))
    ]
    made = [
        (paint, table.block(mat, paint, f"block {i}"), mat)
        for i, (paint, mat) in enumerate(zip((one, other), mats, strict=True))
    ]
    steps = [
        lift(block, f"the {paint} block", mat, ["recurrence", "sequence"], of(i + 1, 3), occurrence=i + 1, of=3, colour=paint)
        for i in range(3) for paint, block, mat in made
    ]  # fmt: skip
    return Draft(
        f"Lift the {one} block and the {other} block in turn, starting with the {one} one, 3 times each.", steps, mats
    )


def cover_lifts(table: Layout) -> Draft:
    """R8: lift the cover four times, then move it away."""
    lid, paint, ground = table.dice.shuffled(PAINTS)[:3]
    spot = table.spot(0.06, -0.14, "its place")
    goal = table.place(table.mat(0.06, 0.15, ground, "goal"), f"the {ground} mat")
    table.block(spot, paint, "block", 0.016)
    cover, what = table.cover(spot, lid), f"the {lid} cover"
    steps = [
        lift(cover, what, spot, ["recurrence"], of(i + 1, 4), occurrence=i + 1, of=4, hides=paint) for i in range(4)
    ]
    steps.append(
        carry(cover, what, "its place", goal, ["recurrence", "state"], " after 4 lifts", lifts_done=4, hides=paint)
    )
    return Draft(
        f"Lift the {lid} cover and put it back 4 times, then move it onto the {ground} mat.", steps, [spot, goal]
    )
