"""What a frame shows of a step, in words, and what three frames prove: held against the simulator's own predicates."""

from __future__ import annotations

from dataclasses import replace

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from performed import played

from compass_edge.errors import UsageError
from compass_edge.sim.catalogue import TASKS
from training.footage import chosen_frames, training_script
from training.judgement import judge, rest_of
from training.memory import evidence
from training.stage import Stage, objects

_SOME = ("S2", "S3", "S4", "S7", "Q2", "Q4", "Q6", "Q8", "R1", "R6", "R8")


@pytest.mark.parametrize("task", _SOME)
def test_every_step_is_done_at_its_end_and_not_before(task: str) -> None:
    film = played(task)
    stage = Stage(film.script)
    for step, end in enumerate(film.ends):
        begin = film.ends[step - 1] if step else 0
        part = stage.part(step)
        rest = rest_of(part, film.shots, begin)
        shows = evidence(stage, part, film, begin, end, rest)
        assert shows, f"no frame of '{part.deed.outcome}' shows it"
        during = film.shots[shows[len(shows) // 2]]
        assert judge(stage, part, film.shots[begin], during, film.shots[end], rest).verdict == "done"
        if part.deed.kind != "watch":
            assert (
                judge(stage, part, film.shots[begin], film.shots[begin], film.shots[begin + 1], rest).verdict
                == "not_done"
            )
            assert judge(stage, part, film.shots[begin], during, during, rest).verdict == "not_done"


@pytest.mark.parametrize("task", ["R4", "R6", "R8"])
def test_a_lift_that_begins_while_the_one_before_is_let_go_of_is_done(task: str) -> None:
    film, step = played(task), 1
    stage, begin, end = Stage(film.script), film.ends[0], film.ends[1]
    part = stage.part(step)
    rest = rest_of(part, film.shots, begin)
    during = film.shots[evidence(stage, part, film, begin, end, rest)[0]]
    start = film.shots[begin - 1]
    judged = judge(stage, part, start, during, film.shots[end], rest)
    assert judged.start.endswith("gripped")
    assert judged.verdict == "done"
    assert judge(stage, part, start, start, film.shots[end], rest).verdict == "not_done", "it was never up"
    assert judge(stage, part, start, during, start, rest).verdict == "not_done", "it is not yet let go of"


@pytest.mark.parametrize("task", ["S2", "Q5", "Q6", "R2", "R7"])
def test_nothing_else_is_done_by_it(task: str) -> None:
    film = played(task)
    stage = Stage(film.script)
    for step, end in enumerate(film.ends):
        begin = film.ends[step - 1] if step else 0
        true = stage.part(step)
        shows = evidence(stage, true, film, begin, end, rest_of(true, film.shots, begin))
        for other in stage.others(film.shots[begin]):
            alike = (other.deed.kind, other.thing, other.goal) == (true.deed.kind, true.thing, true.goal)
            if not alike:
                rest = rest_of(other, film.shots, begin)
                judged = judge(
                    stage, other, film.shots[begin], film.shots[shows[len(shows) // 2]], film.shots[end], rest
                )
                assert judged.verdict != "done", f"'{other.deed.outcome}' by '{true.deed.outcome}'"


@pytest.mark.parametrize(("task", "verdict"), [("S1", "done"), ("S2", "not_done")])
def test_a_wrong_origin_matters_only_where_several_look_alike(task: str, verdict: str) -> None:
    """The Orienter may be wrong about where a thing stands: what counts is that this one has come to its goal."""
    film = played(task)
    stage, end = Stage(film.script), film.ends[0]
    part = stage.part(0)
    assert part.thing is not None
    known = (part.deed.origin, part.deed.goal)
    elsewhere = next(place for place in stage.goals(part.thing) if place.within is None and place.name not in known)
    wrong = replace(part, deed=replace(part.deed, origin=elsewhere.name), origin=elsewhere)
    judged = judge(stage, wrong, film.shots[0], film.shots[end // 2], film.shots[end], 0.0)
    assert judged.verdict == verdict
    assert "from" not in judged.change


@pytest.mark.parametrize("step", [0, 1])
def test_what_went_into_a_box_is_known_only_where_the_hand_was_seen_over_it(step: int) -> None:
    """Nobody can see into a box: with the hand on its way in the middle frame and gone in the last one, it may be in either."""
    film = played("S7")
    stage, end = Stage(film.script), film.ends[step]
    part, begin = stage.part(step), film.ends[step - 1] if step else 0
    rest = rest_of(part, film.shots, begin)
    held = [frame for frame in range(begin, end) if film.shots[frame].held is not None]
    way, over = held[len(held) // 2], evidence(stage, part, film, begin, end, rest)[0]
    later = film.shots[min(end + 25, [*film.ends, len(film.shots)][step + 1] - 1)]
    assert judge(stage, part, film.shots[begin], film.shots[over], later, rest).verdict == "done"
    judged = judge(stage, part, film.shots[begin], film.shots[way], later, rest)
    assert judged.verdict == "not_done"
    assert "not seen" in judged.candidate


def test_what_was_hidden_is_told_when_it_was_seen() -> None:
    film = played("S8")
    stage = Stage(film.script)
    part, rest = stage.part(0), rest_of(stage.part(0), film.shots, 0)
    shows = evidence(stage, part, film, 0, film.ends[0], rest)
    judged = judge(stage, part, film.shots[0], film.shots[shows[len(shows) // 2]], film.shots[film.ends[0]], rest)
    hidden = film.script.steps[0].facts["hides"]
    assert f"{hidden} block under it" in judged.candidate
    assert "under it" not in judged.start, "before the cover was up nobody knew"


def test_what_stands_under_a_cover_is_not_listed() -> None:
    film = played("S8")
    listed = dict(objects(Stage(film.script), film.shots[0]))
    assert sum("block" in name for name in listed) == 1
    (covers,) = (numbers for name, numbers in listed.items() if name.endswith("cover"))
    assert [film.script.things[at].kind for at in covers] == ["cover"] * 3


@pytest.mark.parametrize("seed", [0, 4, 100, 999])
def test_test_seeds_and_negatives_are_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="no model may be trained on it"):
        training_script("R1", seed)


def test_a_stretch_holds_whole_ticks_and_the_first_frame() -> None:
    from compass_edge.sim.dice import Dice

    for task in TASKS:
        frames = chosen_frames([60, 130, 220, 300], 330, Dice(task))
        assert frames[0] == 0
        assert all(frame % 2 == 0 for frame in frames)
        assert frames == sorted(set(frames))


@pytest.mark.parametrize(
    ("task", "share"), [("R1", 0.9), ("R2", 0.9), ("Q4", 0.9), ("R4", 0.8), ("R6", 0.8), ("R8", 0.8)]
)
def test_a_step_shows_itself_where_the_loop_looks_for_it(task: str, share: float) -> None:
    """The scores that `middle` in the settings names: a button is down at 0.9 of a press, a thing is up at 0.8 of a lift."""
    film = played(task)
    stage, shown = Stage(film.script), []
    for step, end in enumerate(film.ends):
        begin, part = film.ends[step - 1] if step else 0, stage.part(step)
        if part.deed.kind != "move":
            seen = evidence(stage, part, film, begin, end, rest_of(part, film.shots, begin))
            shown.append(min(abs(begin + share * (end - begin) - frame) for frame in seen) <= 1)
    assert sum(shown) >= 0.8 * len(shown)


def test_other_steps_of_a_script_are_wrong_sentences_and_the_way_back_is_among_them() -> None:
    film = played("R3")
    stage = Stage(film.script)
    there, back = stage.part(0), stage.part(1)
    assert [one.deed for one in stage.besides(there)] == [back.deed]
    assert (there.deed.origin, there.deed.goal) == (back.deed.goal, back.deed.origin)


def test_an_empty_slot_is_read_off_its_rack_and_a_full_one_off_its_tube() -> None:
    film = played("Q2")
    stage, shot = Stage(film.script), film.shots[0]
    kinds = {
        place.name: [film.script.things[at].kind for at in stage.spot(place, shot)] for place in stage.places.values()
    }
    assert all(found == (["tube"] if "brown" in name else ["rack"]) for name, found in kinds.items())
    assert len(kinds) == 6
