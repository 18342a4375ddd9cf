"""Acts: what counts as done, and what only looks like it."""

from __future__ import annotations

from sim_shots import BLOCK, BUTTON, HERE, MAT, REST, THERE, shot

from compass_edge.sim.acts import Carry, Lift, Press, Tap, Watch, rests
from compass_edge.sim.things import Place

UP = (0.0, 0.1, REST + 0.1)
OVER = (0.0, -0.1, REST)


def test_a_block_rests_only_when_the_fingers_have_let_go() -> None:
    assert rests(shot(), BLOCK, HERE)
    assert not rests(shot(held=BLOCK.name), BLOCK, HERE)
    assert not rests(shot(touched=frozenset({BLOCK.name})), BLOCK, HERE)
    assert not rests(shot(opening=0.017), BLOCK, HERE)


def test_a_block_rests_only_on_its_place() -> None:
    assert rests(shot((0.02, 0.12, REST)), BLOCK, HERE)
    assert not rests(shot((0.031, 0.1, REST)), BLOCK, HERE)
    assert not rests(shot((0.0, 0.1, REST + 0.02)), BLOCK, HERE)  # on top of something
    assert not rests(shot(OVER), BLOCK, HERE)


def test_everywhere_inside_a_box_counts() -> None:
    box = Place("the box", (0.0, 0.1), (0.0, 0.1), 0.004, within=0.05)
    assert rests(shot((0.04, 0.06, REST)), BLOCK, box)
    assert rests(shot((0.0, 0.1, REST + 0.04)), BLOCK, box)  # upon another one
    assert not rests(shot((0.06, 0.1, REST)), BLOCK, box)
    assert not rests(shot((0.0, 0.1, REST + 0.08)), BLOCK, box)  # on the rim


def test_a_carry_needs_somebody_to_carry() -> None:
    act = Carry(BLOCK, THERE)
    assert not act.done([shot(), shot(OVER)])  # it was there, but nobody brought it
    held = shot(UP, held=BLOCK.name)
    assert act.underway([shot(), held])
    assert not act.done([shot(), held, shot(OVER, held=BLOCK.name)])
    assert act.done([shot(), held, shot(OVER)])


def test_a_lift_is_done_when_it_is_back() -> None:
    act = Lift(BLOCK, HERE)
    assert not act.done([shot(), shot()])  # the moment before looks like the moment after
    assert not act.underway([shot(), shot((0.0, 0.1, REST + 0.04))])
    assert act.underway([shot(), shot(UP)])
    assert not act.done([shot(), shot(UP)])
    assert act.done([shot(), shot(UP), shot()])


def test_a_press_is_done_when_the_button_is_up_again() -> None:
    act = Press(BUTTON)
    assert not act.done([shot(), shot()])
    assert not act.underway([shot(), shot(travel=-0.006)])
    assert not act.done([shot(), shot(travel=-0.010)])
    assert not act.done([shot(), shot(travel=-0.010), shot(travel=-0.004)])
    assert act.done([shot(), shot(travel=-0.010), shot(travel=-0.002)])


def test_a_tap_is_one_of_its_own_mat() -> None:
    act = Tap(MAT)
    high, low = shot(gripper=(0.0, -0.1, 0.13)), shot(gripper=(0.01, -0.09, 0.012))
    assert act.done([high, low, high])
    assert not act.done([high, low])
    assert not act.done([high, shot(gripper=(0.0, 0.1, 0.012)), high])


def test_a_watch_counts_what_the_lamp_has_shown() -> None:
    act = Watch(("red", "red"))
    dark, lit = shot(), shot(lamp="red")
    assert not act.underway([dark])
    assert not act.done([dark, lit, lit, dark])
    assert not act.done([dark, lit, dark, lit])
    assert act.done([dark, lit, dark, lit, dark])
