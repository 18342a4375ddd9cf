"""Every scenario, by every executor: the same events, and what its own `expect` block says."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from compass_edge.errors import UsageError
from compass_edge.loop.curve import curve
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import (
    Event,
    FrameScored,
    Gap,
    Oriented,
    ReplyInvalid,
    Stalled,
    StepBegun,
    StreamEnded,
    Verified,
)
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.progress import Progress
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Tau
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.scripted.expect import Tally
from compass_edge.scripted.models import ScriptedLatency, scripted_models
from compass_edge.scripted.scenario import BOARDS, FOLDER, Scenario, built_in, load, parse
from compass_edge.scripted.ticks import ScriptedTicks

EXECUTORS = ("sequential", "overlapped", "pool")


def played(
    scenario: Scenario,
    executor: str = "sequential",
    *,
    tau: Tau = "everywhere",
    past: list[Event] | None = None,
    on_provisional: Callable[[Progress], None] | None = None,
) -> tuple[list[Event], Tally]:
    world, models = scenario.world, scripted_models(scenario.world)
    lanes = VirtualLanes(models, ScriptedLatency(scenario.latency, world))
    ticks, events, tally = ScriptedTicks(world, lanes.now_ns), list(past or []), Tally()
    subscribers = (lambda event, state: events.append(event), tally)
    settings = replace(scenario.settings, tau=tau)
    if past:
        episode = Episode.resume(past, ticks, models.names(), subscribers)
    else:
        episode = Episode.begin(world.instruction, ticks, models.names(), settings=settings, subscribers=subscribers)
    if executor == "sequential":
        run_sequential(episode, lanes)
    elif executor == "overlapped":
        Overlapped(episode, lanes, models, on_provisional).run()
    else:
        run_pool([episode], lanes, models)
    return events, tally


@cache
def reference(name: str) -> list[Event]:
    return played(load(name))[0]


def test_all_that_the_paper_tells_is_there() -> None:
    assert set(built_in()) >= {
        *("state-recall", "sequence", "recurrence", "early-stop", "extra-steps", "mismatch", "stall", "replan"),
        *("omitted-step", "bad-replies", "dropped-frames", "late-objects"),
    }
    assert all(load(name).about for name in built_in())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", built_in())
def test_every_executor_gives_the_same_events_and_what_is_expected(name: str, executor: str) -> None:
    scenario = load(name)
    events, tally = played(scenario, executor)
    assert scenario.expect.differences(tally) == []
    assert events == reference(name)


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("name", ["state-recall", "bad-replies"])
def test_latencies_change_no_event(name: str, board: str) -> None:
    assert played(replace(load(name), latency=BOARDS[board]), "overlapped")[0] == reference(name)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("tau", ["orienter", "nowhere"])
@pytest.mark.parametrize("name", built_in())
def test_without_the_expected_transition(name: str, tau: Tau, executor: str) -> None:
    """Scripted models need no tau: the ablation changes what they are told, and not what comes of it."""
    scenario = load(name)
    events, tally = played(scenario, executor, tau=tau)
    assert scenario.expect.differences(tally) == []
    told = [event.subtask.tau for event in events if isinstance(event, StepBegun) and not event.from_plan]
    assert all(bool(text) == (tau == "orienter") for text in told)


@pytest.mark.parametrize("name", ["omitted-step", "bad-replies", "dropped-frames"])
def test_a_run_goes_on_from_wherever_it_was_cut_off(name: str) -> None:
    whole = reference(name)
    for cut in range(1, len(whole) + 1):
        assert played(load(name), "overlapped", past=whole[:cut])[0] == whole, cut


def test_mismatch_never_shows_more_than_zero() -> None:
    shown: list[Progress] = []
    played(load("mismatch"), "overlapped", on_provisional=shown.append)
    assert not any(progress.value for progress in shown)
    assert sum(isinstance(event, Oriented) for event in reference("mismatch")) > 1  # O looked again


def test_extra_steps_end_while_the_video_goes_on() -> None:
    assert not any(isinstance(event, StreamEnded) for event in reference("extra-steps"))


def test_a_stalled_step_is_scored_and_not_verified_again() -> None:
    events = reference("stall")
    after = events[next(at for at, event in enumerate(events) if isinstance(event, Stalled)) :]
    assert sum(isinstance(event, FrameScored) for event in after) > 5
    assert not any(isinstance(event, Verified) for event in after)


def test_a_new_plan_rebases_the_curve() -> None:
    points = curve(reference("replan"))
    second = [point for point in points if point.step_id == 2]
    assert {point.revision for point in second} == {2}  # five steps then, four in the end
    assert all(point.rebased > point.live for point in second)
    assert points[-1].rebased == 100
    assert [point.rebased for point in points] == sorted(point.rebased for point in points)


def test_bad_replies_are_told_apart() -> None:
    told = {(event.role, event.trouble) for event in reference("bad-replies") if isinstance(event, ReplyInvalid)}
    assert told == {("verifier", "schema"), ("orienter", "schema"), ("prm", "missing"), ("verifier", "late")}
    assert any(isinstance(event, StepBegun) and event.from_plan for event in reference("bad-replies"))


def test_gaps_tell_how_much_is_missing() -> None:
    assert [event.missed for event in reference("dropped-frames") if isinstance(event, Gap)] == [60, 30]


def changed(**changes: Any) -> bytes:
    values = json.loads((FOLDER / "sequence.json").read_text())
    return json.dumps({key: value for key, value in {**values, **changes}.items() if value is not ...}).encode()


_STEPS = json.loads((FOLDER / "sequence.json").read_text())["steps"]
_EXPECT = json.loads((FOLDER / "sequence.json").read_text())["expect"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"plann": [1]}, "the file has a key 'plann' that means nothing. There are: instruction, timeline"),
        ({"plan": ...}, "the file must have the key 'plan', and it is missing"),
        ({"instruction": ""}, 'instruction must be a text that is not empty, and "" came'),
        ({"timeline": {}}, "timeline must be a list, and {} came"),
        ({"timeline": []}, "timeline must be a list of at least one segment, and [] came"),
        ({"timeline": [{"does": "x", "for": 0}]}, "timeline[0].for must be a whole number of at least 1, and 0 came"),
        ({"timeline": [{"does": "x", "for": 1.5}]}, "timeline[0].for must be a whole number of at least 1"),
        ({"timeline": [{"does": "x"}]}, "timeline[0] must have the key 'for'"),
        ({"timeline": [{"idle": 2, "for": 3}]}, "timeline[0] has a key 'for' that means nothing. There are: idle"),
        ({"timeline": [{"idle": True}]}, "timeline[0].idle must be a whole number of at least 1, and true came"),
        (
            {"steps": [{**_STEPS[0], "happening": "dance"}]},
            "steps[0].happening must be something that the timeline does",
        ),
        ({"steps": [_STEPS[0], _STEPS[0]]}, "steps[1].id must be an id that no other step has, and 1 came"),
        ({"steps": [{**_STEPS[0], "completion": "soon"}]}, "steps[0].completion must be one of lasting, brief, observ"),
        ({"plan": [1, 4]}, "plan[1] must be the id of a step (1, 2, 3), and 4 came"),
        ({"plan": [2, 1]}, "plan must be the ids 1, 2, 3 and so on in order"),
        ({"plan": []}, "plan must be a list of at least one step"),
        ({"cut_at": 99}, "cut_at must be a whole number of at least 1 and at most 44, and 99 came"),
        ({"missing": [500]}, "missing[0] must be a whole number of at least 1 and at most 44, and 500 came"),
        (
            {"grounded_from": "soon"},
            'grounded_from must be a whole number of at least 0 and at most 44, and "soon" came',
        ),
        ({"objects": {"tube": -1}}, "objects.tube must be a whole number of at least 0"),
        ({"omitted": [9]}, "omitted[0] must be the id of a step"),
        ({"describes": {"2": 9}}, "describes.2 must be the id of a step"),
        ({"edits": {"nine": []}}, "a key of edits must be the id of a step, and 'nine' came"),
        ({"edits": {"2": [{"swap": 3}]}}, "edits.2[0] must be an edit"),
        ({"edits": {"2": [{"remove": 3, "before": 2}]}}, "edits.2[0] has a key 'before' that means nothing"),
        ({"faults": [{"role": "x", "from": 1, "to": 2, "reply": ""}]}, "faults[0].role must be one of orienter, prm"),
        (
            {"faults": [{"role": "prm", "from": 5, "to": 2, "reply": 1}]},
            "faults[0].to must be a tick that is not before 5, where the fault begins, and 2 came",
        ),
        ({"faults": [{"role": "prm", "from": 1, "to": 2, "reply": "x"}]}, "faults[0].reply must be a number"),
        ({"faults": [{"role": "prm", "from": 1, "to": 99, "reply": 1}]}, "faults[0].to must be a whole number"),
        ({"latency": "fast"}, 'latency must be one of thor, orin, and "fast" came'),
        ({"latency": {"orienter": 1, "prm": 1, "verifier": -1}}, "latency.verifier must be a number of at least 0"),
        ({"settings": {"max_stepz": 2}}, "settings: There is no setting 'max_stepz'"),
        ({"settings": {"every": 5}}, "settings.every must be left out"),
        ({"expect": {**_EXPECT, "outcome": "great"}}, "expect.outcome must be one of done, incomplete"),
        ({"expect": {**_EXPECT, "value": 101}}, "expect.value must be a number of at least 0 and at most 100"),
        ({"expect": {**_EXPECT, "phases": ["LOST"]}}, "expect.phases[0] must be one of ORIENTING"),
    ],
)
def test_what_cannot_be_meant_gets_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        parse("mine", "mine.json", changed(**changes))
    assert str(told.value).startswith("mine.json: ")
    assert sentence in str(told.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "expected a scenario as JSON"),
        (b"\xff\xfe", "expected a scenario as JSON"),
        (b"[1]", "the file must be an object, and [1] came"),
        (b'{"plan": [1], "plan": [2]}', "the key 'plan' is there twice"),
        (b"[" * 100_000, "expected a scenario as JSON"),
    ],
)
def test_what_is_no_scenario_gets_a_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(UsageError, match=r"^mine\.json: ") as told:
        parse("mine", "mine.json", data)
    assert sentence in str(told.value)


def test_an_expectation_that_is_not_met_is_told() -> None:
    scenario = parse("mine", "mine.json", changed(expect={**_EXPECT, "accepted": 7, "value": 50, "phases": ["DONE"]}))
    found = scenario.expect.differences(played(scenario)[1])
    assert found[0] == "value should be 50.0 and is 100.0"
    assert found[1] == "accepted should be 7 and is 3"
    assert found[2].startswith("phases should be DONE and is ORIENTING, TRACKING")
