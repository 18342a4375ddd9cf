"""The pool: batches across episodes, limits, models that are never idle for one while another waits, and failing ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from chaos import chaos_models, chaos_world

from compass_edge.loop.call import Call, Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Ended, Event, ReplyInvalid
from compass_edge.loop.lanes import ROLES, Finished, Job, Limits, Signal
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.models import Clip, Image
from compass_edge.scripted.models import ScriptedLatency, scripted_models
from compass_edge.scripted.scenario import load
from compass_edge.scripted.ticks import ScriptedTicks
from compass_edge.scripted.world import Fault

SECONDS = {"orienter": 5.0, "prm": 0.5, "verifier": 4.0}


class CountedLanes(VirtualLanes):
    """Remembers its jobs, when they began, and how many of a role ran at once."""

    def __init__(self, models: Models, latency: ScriptedLatency, limits: Limits | None = None) -> None:
        super().__init__(models, latency, limits)
        self.jobs: list[tuple[int, Job]] = []
        self.most: Counter[str] = Counter()
        self._now: Counter[str] = Counter()

    def start(self, job: Job) -> None:
        self.jobs.append((self.now_ns(), job))
        self._now[job.role] += 1
        self.most[job.role] = max(self.most[job.role], self._now[job.role])
        super().start(job)

    def cancel(self, job: Job) -> None:
        self._now[job.role] -= 1
        super().cancel(job)

    def wait(self, until_ns: int | None) -> list[Signal]:
        signals = super().wait(until_ns)
        for signal in signals:
            self._now[signal.job.role] -= isinstance(signal, Finished)
        return signals


def episodes_of(models: Models, seeds: range) -> list[Episode]:
    worlds = (chaos_world(seed) for seed in seeds)
    return [Episode.begin(world.instruction, ScriptedTicks(world), models.names()) for world in worlds]


def origin(call: Call) -> str:
    images = call.body.frames if isinstance(call.body, Clip) else [p for p in call.body.parts if isinstance(p, Image)]
    return images[0].digest.rsplit("/", 1)[0]


def test_calls_of_several_episodes_go_to_a_model_together_if_it_takes_them() -> None:
    models = chaos_models(max_batch=4)
    lanes = CountedLanes(models, ScriptedLatency(SECONDS))
    run_pool(episodes_of(models, range(8)), lanes, models, at_once=5)
    for role in ROLES:
        sizes = [len(job.calls) for _, job in lanes.jobs if job.role == role]
        assert 1 < max(sizes) <= 4, role
        assert any(len({origin(call) for call in job.calls}) > 1 for _, job in lanes.jobs if job.role == role), role


def test_a_model_that_takes_one_call_gets_one() -> None:
    models = chaos_models(max_batch=1)
    lanes = CountedLanes(models, ScriptedLatency(SECONDS))
    run_pool(episodes_of(models, range(5)), lanes, models, at_once=5)
    assert {len(job.calls) for _, job in lanes.jobs} == {1}
    assert dict(lanes.most) == dict.fromkeys(ROLES, 1)


def test_limits_are_kept_model_by_model() -> None:
    models = chaos_models()
    lanes = CountedLanes(models, ScriptedLatency(SECONDS), Limits(at_once={"orienter": 1, "prm": 3, "verifier": 2}))
    run_pool(episodes_of(models, range(8)), lanes, models, at_once=8)
    assert dict(lanes.most) == {"orienter": 1, "prm": 3, "verifier": 2}


@pytest.mark.parametrize("speculate", [True, False])
def test_a_model_idle_for_one_episode_serves_another(speculate: bool) -> None:
    """Nothing can be faster than the busiest model alone. The pool is nearly that fast, one after the other is far from it."""
    models, seeds = chaos_models(), range(30)
    alone, work = 0, Counter[str]()
    for episode in episodes_of(models, seeds):
        lanes = VirtualLanes(models, ScriptedLatency(SECONDS))
        run_sequential(episode, lanes)
        alone += lanes.now_ns()
        work.update(lanes.busy_ns)
    lanes = VirtualLanes(models, ScriptedLatency(SECONDS))
    run_pool(episodes_of(models, seeds), lanes, models, speculate=speculate)
    bound = max(work.values())
    assert bound <= lanes.now_ns() < 1.15 * bound < 0.75 * alone


def test_a_model_that_fails_again_and_again_is_left_alone_for_a_while() -> None:
    """Three failures in a row, five seconds' rest, one try: and the episode ends in order all the same."""
    world = load("sequence").world
    world = replace(world, faults=(Fault("verifier", 0, world.ticks, "raise"),))
    models, events, faults = scripted_models(world), list[Event](), list[bool]()
    lanes = CountedLanes(models, ScriptedLatency(SECONDS, world))

    def see(event: Event, _state: object) -> None:
        events.append(event)
        faults.append(executor.fault if executor is not None else False)

    executor: Overlapped | None = None
    episode = Episode.begin(world.instruction, ScriptedTicks(world, lanes.now_ns), models.names(), subscribers=(see,))
    executor = Overlapped(episode, lanes, models)
    executor.run()
    asked = [at for at, job in lanes.jobs if job.role == "verifier"]
    assert len(asked) > 4
    third_reply = asked[2] + SECONDS["verifier"] * 1e9
    assert asked[3] >= third_reply + 5e9
    assert any(faults)
    assert all(event.trouble == "missing" for event in events if isinstance(event, ReplyInvalid))
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome in ("stalled", "incomplete")
