"""Speculation is prefetching: what is started when, what becomes of it, and that events know nothing of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from compass_edge.loop.call import Call
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Event, Oriented, Role, StepBegun, Verified
from compass_edge.loop.lanes import Finished, Job, Signal, Streamed
from compass_edge.loop.memo import Speculation
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.progress import Progress
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.models import Clip, Question
from compass_edge.scripted.models import ScriptedLatency, scripted_models
from compass_edge.scripted.ticks import ScriptedTicks
from compass_edge.scripted.world import Fault, Happening, StepScript, World

SECONDS = {"orienter": 7.5, "prm": 0.14, "verifier": 1.8}
STEPS = tuple(StepScript(n, f"act {n}", f"outcome {n}", f"sign {n}", f"do act {n}") for n in (1, 2))
WORLD = World(
    "two acts", "do both acts", 80, (Happening("act 1", 2, 10), Happening("act 2", 60, 70)), STEPS, (1, 2), {"thing": 1}
)
UNCERTAIN = (
    '{"start": "before", "during": "under way", "candidate": "hard to see", "change": "unclear", '
    '"count_start": null, "count_candidate": null, "verdict": "uncertain"}'
)
# V sees nothing in the first candidate of act 1 and accepts the second.
DOUBTED = replace(WORLD, faults=(Fault("verifier", 10, 11, UNCERTAIN),))


@dataclass
class Log:
    """Everything that lanes and episode said, with the second it was said in."""

    started: list[tuple[float, Call]] = field(default_factory=list)
    written: list[tuple[float, str, str]] = field(default_factory=list)
    finished: list[tuple[float, Role]] = field(default_factory=list)
    cancelled: list[tuple[float, Role]] = field(default_factory=list)
    events: list[tuple[float, Event]] = field(default_factory=list)
    shown: list[tuple[float, Progress]] = field(default_factory=list)
    speculation: Speculation | None = None

    def calls(self, role: Role, since: float, until: float) -> list[Call]:
        return [call for at, call in self.started if call.role == role and since <= at < until]

    def when(self, kind: type[Any], number: int = 0) -> float:
        return [at for at, event in self.events if isinstance(event, kind)][number]


class LoggedLanes(VirtualLanes):
    log: Log

    def start(self, job: Job) -> None:
        self.log.started += [(self.now_ns() / 1e9, call) for call in job.calls]
        super().start(job)

    def cancel(self, job: Job) -> None:
        self.log.cancelled.append((self.now_ns() / 1e9, job.role))
        super().cancel(job)

    def wait(self, until_ns: int | None) -> list[Signal]:
        signals = super().wait(until_ns)
        for signal in signals:
            if isinstance(signal, Streamed):
                self.log.written.append((self.now_ns() / 1e9, signal.job.role, signal.name))
            elif isinstance(signal, Finished):
                self.log.finished.append((self.now_ns() / 1e9, signal.job.role))
        return signals


def run(world: World, *, overlapped: bool = True) -> Log:
    models, log = scripted_models(world), Log()
    lanes = LoggedLanes(models, ScriptedLatency(SECONDS, world))
    lanes.log = log
    episode = Episode.begin(
        world.instruction,
        ScriptedTicks(world, lanes.now_ns),
        models.names(),
        subscribers=(lambda event, _state: log.events.append((lanes.now_ns() / 1e9, event)),),
    )
    if overlapped:
        log.speculation = Overlapped(
            episode, lanes, models, lambda progress: log.shown.append((lanes.now_ns() / 1e9, progress))
        ).run()
    else:
        run_sequential(episode, lanes)
    return log


def sentence(call: Call) -> str:
    assert isinstance(call.body, Clip)
    return call.body.sentence


def test_while_v_runs_p_scores_on_for_the_step_in_flight() -> None:
    log = run(WORLD)
    verdict = log.when(Verified)
    asked = verdict - SECONDS["verifier"]
    ahead = log.calls("prm", asked + 0.01, verdict)
    assert ahead
    assert "do act 1" in {sentence(call) for call in ahead}


def test_o_is_asked_as_soon_as_v_has_written_what_the_candidate_shows() -> None:
    log = run(WORLD)
    verdict = log.when(Verified)
    described = next(at for at, role, name in log.written if (role, name) == ("verifier", "candidate"))
    (early,) = log.calls("orienter", 8, verdict)
    assert early.asked == "next"
    assert [at for at, call in log.started if call is early] == [described]
    assert described < verdict
    # The Navigator then asks for exactly that: O has not to be asked again.
    assert log.calls("orienter", verdict, log.when(StepBegun, 1)) == []
    assert log.when(Oriented, 1) == pytest.approx(described + SECONDS["orienter"])


def test_p_starts_on_the_next_step_as_soon_as_o_has_written_its_sentence() -> None:
    log = run(WORLD)
    said = [at for at, role, name in log.written if (role, name) == ("orienter", "subtask")][1]
    begun = log.when(StepBegun, 1)
    early = [call for call in log.calls("prm", said, begun) if sentence(call) == "do act 2"]
    assert said < begun
    assert early


def test_a_rejection_takes_back_what_was_asked_for_an_acceptance() -> None:
    log = run(DOUBTED)
    rejected, event = next((at, event) for at, event in log.events if isinstance(event, Verified))
    assert not event.accepted
    assert log.cancelled == [(rejected, "orienter")]
    assert log.speculation is not None
    assert log.speculation.cancelled == 1


def test_events_know_nothing_of_it() -> None:
    for world in (WORLD, DOUBTED):
        overlapped, sequential = run(world), run(world, overlapped=False)
        assert [event for _, event in overlapped.events] == [event for _, event in sequential.events]
        assert overlapped.events[-1][0] <= sequential.events[-1][0]


def test_while_o_is_asked_the_next_step_is_shown_by_the_plans_own_words_and_says_so() -> None:
    """From the acceptance to the next step's beginning the events stand still, and the picture does not."""
    log = run(WORLD)
    since, until = log.when(Verified), log.when(StepBegun, 1)
    shown = [progress for at, progress in log.shown if since < at < until]
    assert shown
    assert all(progress.provisional and progress.step == 2 for progress in shown)
    described = next(at for at, role, name in log.written if (role, name) == ("verifier", "candidate"))
    said = [at for at, role, name in log.written if (role, name) == ("orienter", "subtask")][1]
    words = {sentence(call) for call in log.calls("prm", described, said)}
    assert words == {"do act 1", "outcome 2"}  # in case of a rejection, and in case of an acceptance
    events = [event for at, event in log.events if since < at < until]
    assert events == []
    frames = [progress.frame for progress in shown]
    assert frames == sorted(frames)
    assert frames[-1] > frames[0]


def test_hits_waste_and_saved_time_are_counted() -> None:
    log = run(WORLD)
    stats = log.speculation
    assert stats is not None
    assert stats.started == stats.hits + stats.wasted
    assert stats.hit_rate is not None
    assert 0 < stats.hit_rate <= 1
    early = [call for call in log.calls("orienter", 8, log.when(Verified)) if isinstance(call.body, Question)]
    assert len(early) == 1
    # What O had done by the time of the verdict is waiting that was spared, at the least.
    assert stats.saved_ns >= (log.when(Verified) - next(at for at, call in log.started if call is early[0])) * 1e9 - 1
