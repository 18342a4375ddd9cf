"""The three executors give the same events, whatever the models say and in whatever order they finish."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from chaos import ChaosLatency, chaos_models, chaos_world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compass_edge.loop.active import ActiveStep
from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import (
    CompletionProposed,
    Ended,
    Event,
    FrameScored,
    Gap,
    Oriented,
    ReplyInvalid,
    Reviewed,
    Stalled,
    StepBegun,
    Verified,
)
from compass_edge.loop.journal import Journal
from compass_edge.loop.lanes import Limits
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.progress import Phase, Progress, progress_of
from compass_edge.loop.recording import read_journal
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.scripted.ticks import ScriptedTicks

SOAK = os.environ.get("COMPASS_EDGE_EPISODES")  # `make soak`: more of them, other ones each time
EPISODES = int(SOAK or 1000)
LATE = 0.03
GROUP = 5  # episodes that share a pool


def settings_of(seed: int) -> Settings:
    dice = random.Random(f"settings {seed}")
    return Settings(
        max_frames=dice.choice([4, 6, 16, 128]),
        max_verifications=dice.choice([1, 2, 8]),
        max_steps=dice.choice([4, 8, 32]),
        look_again=dice.choice([1, 3, 32]),
        tau=dice.choice(["everywhere", "everywhere", "orienter"]),
    )


class Run:
    """One episode and everything that was told of it."""

    def __init__(self, seed: int, models: Models, clock: Any = None) -> None:
        self.events: list[Event] = []
        self.states: list[State] = []
        world = chaos_world(seed)
        self.episode = Episode.begin(
            world.instruction,
            ScriptedTicks(world, clock),
            models.names(),
            settings=settings_of(seed),
            subscribers=(self._see,),
        )

    def _see(self, event: Event, state: State) -> None:
        self.events.append(event)
        self.states.append(state)


def lanes_for(models: Models, seed: int, at_once: int = 1) -> VirtualLanes:
    limits = Limits(at_once=dict.fromkeys(("orienter", "prm", "verifier"), at_once))
    return VirtualLanes(models, ChaosLatency(seed, LATE), limits)


def sequential(seed: int) -> Run:
    models = chaos_models()
    run = Run(seed, models)
    run_sequential(run.episode, lanes_for(models, seed))
    return run


def assert_same(run: Run, reference: list[Event], what: str) -> None:
    for place, (mine, theirs) in enumerate(zip(run.events, reference, strict=False)):
        assert mine == theirs, f"{what}: event {place} differs"
    assert len(run.events) == len(reference), what


@settings(max_examples=EPISODES // GROUP, derandomize=SOAK is None, suppress_health_check=list(HealthCheck))
@given(
    seeds=st.lists(st.integers(0, 10**9), min_size=GROUP, max_size=GROUP, unique=True),
    order=st.integers(0, 10**9),
    at_once=st.integers(1, GROUP),
    workers=st.integers(1, 2),
    max_batch=st.integers(1, 4),
)
def test_the_three_executors_tell_the_same_story(
    seeds: list[int], order: int, at_once: int, workers: int, max_batch: int
) -> None:
    """A thousand random episodes: edits, rejections, repeats, early ends, invalid, late and missing replies, lost frames."""
    references = {seed: sequential(seed).events for seed in seeds}

    for seed in seeds:  # live: ticks come in their own time, models answer in any order
        models = chaos_models(max_batch)
        lanes = lanes_for(models, order, workers)
        run = Run(seed, models, lanes.now_ns)
        shown: list[Progress] = []
        Overlapped(run.episode, lanes, models, shown.append).run()
        assert_same(run, references[seed], f"overlapped, seed {seed}")
        assert all(progress.provisional for progress in shown)

    models = chaos_models(max_batch)
    lanes = lanes_for(models, order, workers)
    runs = {seed: Run(seed, models) for seed in seeds}
    run_pool((run.episode for run in runs.values()), lanes, models, at_once=at_once)
    for seed, run in runs.items():
        assert_same(run, references[seed], f"pool, seed {seed}")


def test_the_random_episodes_are_not_all_alike() -> None:
    """The test above is worth something only if everything that can happen does."""
    events = [event for seed in range(300) for event in sequential(seed).events]
    outcomes = {event.outcome for event in events if isinstance(event, Ended)}
    assert {"done", "incomplete", "stalled", "ungrounded"} <= outcomes
    for kind in (Oriented, StepBegun, FrameScored, CompletionProposed, Verified, Reviewed, ReplyInvalid, Gap, Stalled):
        assert any(isinstance(event, kind) for event in events), kind.__name__
    assert {event.reason for event in events if isinstance(event, CompletionProposed)} == {"high", "peak", "end"}
    invalid = {(event.asked, event.trouble) for event in events if isinstance(event, ReplyInvalid)}
    assert {asked for asked, _ in invalid} == {"first", "next", "review", "score", "verify"}
    assert {trouble for _, trouble in invalid} == {"schema", "meaning", "late", "missing"}
    assert any(event.from_plan for event in events if isinstance(event, StepBegun))
    assert any(event.plan.revision > 2 for event in events if isinstance(event, Oriented) and event.plan)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_invariants(first: int) -> None:
    for seed in range(first, first + 50):
        check_invariants(sequential(seed), settings_of(seed))


def check_invariants(run: Run, rules: Settings) -> None:
    verified, satisfied = 0.0, []
    for event, state in zip(run.events, run.states, strict=True):
        now = progress_of(state)
        accepted = isinstance(event, Verified) and event.accepted
        assert now.verified <= verified or accepted, "verified progress rose without an accepted verification"
        verified = now.verified
        assert now.verified - 1e-9 <= now.value <= 100
        if state.active is not None and state.plan is not None:
            assert now.value < 100 * (state.plan.done + 1) / state.plan.size, "an unverified step counts as complete"
            assert state.active.verifications <= rules.max_verifications
            assert len(state.active.clip) + 1 <= rules.max_frames
        if state.plan is not None:
            kept = [step for step in state.plan.steps if step.satisfied]
            assert kept[: len(satisfied)] == satisfied, "a satisfied step changed"
            assert [step.satisfied for step in state.plan.steps] == sorted(
                (step.satisfied for step in state.plan.steps), reverse=True
            )
            assert len({step.id for step in state.plan.steps}) == len(state.plan.steps) <= rules.max_steps
            assert len(state.memory) == len(kept)
            satisfied = kept
        assert (now.phase is Phase.DONE) == (state.outcome == "done")
        if now.phase is Phase.DONE:
            assert now.value == now.verified == 100
    assert run.states[-1].outcome is not None
    assert sum(isinstance(event, Ended) for event in run.events) == 1


@pytest.mark.parametrize("seed", range(40))
def test_on_real_threads_too(seed: int) -> None:
    reference = untroubled(seed)
    models = chaos_models(max_batch=1 + seed % 3)
    run = Run(seed, models)
    with ThreadLanes(models) as lanes:
        Overlapped(run.episode, lanes, models).run()
    assert_same(run, reference, f"overlapped on threads, seed {seed}")
    runs = [Run(seed, models) for _ in range(3)]
    with ThreadLanes(models, Limits(at_once=dict.fromkeys(("orienter", "prm", "verifier"), 2))) as lanes:
        run_pool([run.episode for run in runs], lanes, models, at_once=3)
    for run in runs:
        assert_same(run, reference, f"pool on threads, seed {seed}")


def untroubled(seed: int) -> list[Event]:
    """Without late calls: on threads nothing is late on purpose."""
    models = chaos_models()
    run = Run(seed, models)
    run_sequential(run.episode, VirtualLanes(models, ChaosLatency(seed)))
    return run.events


@pytest.mark.parametrize("seed", range(30))
def test_a_kill_at_any_journal_write_resumes_to_the_same_end(seed: int, tmp_path: Path) -> None:
    """Before a record, after it, and in the middle of it."""
    reference = sequential(seed).events
    with Journal.create(tmp_path / "whole") as journal:
        for event in reference:
            journal.append(event)
    records = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    models = chaos_models()
    for cut in range(1, len(reference)):
        head, torn = b"".join(records[: cut + 1]), records[cut + 1][: cut % len(records[cut + 1])]
        path = tmp_path / "cut"
        path.write_bytes(head + torn)
        journal, recording = Journal.resume(path)
        assert recording.events == tuple(reference[:cut])
        assert recording.cut_bytes == len(torn)
        with journal:
            told = (lambda event, _state, journal=journal: journal.append(event),)
            episode = Episode.resume(list(recording.events), ScriptedTicks(chaos_world(seed)), models.names(), told)
            if cut % 2:
                run_sequential(episode, lanes_for(models, seed + cut))
            else:
                Overlapped(episode, lanes_for(models, seed + cut), models).run()
        assert read_journal(path).events == tuple(reference), f"killed after event {cut}"


def test_a_clip_is_thinned_by_its_frames_alone() -> None:
    """However long a step takes, its clip holds the start, the newest frame and an even choice between them."""
    longest: list[ActiveStep] = []
    for seed in range(200):
        longest += [state.active for state in sequential(seed).states if state.active and state.active.stride > 1]
    assert longest
    for active in longest:
        ticks = [(scored.frame.seq - active.began.seq) // 10 for scored in active.clip]
        assert all(tick % active.stride == 0 for tick in ticks[:-1])
