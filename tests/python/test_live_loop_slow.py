"""Live, with models slower than the ticks, and ticks that come at awkward moments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from filmed import (
    EVERY,
    QUICK,
    SIZE,
    Camera,
    Execute,
    Film,
    Run,
    SeeingPrm,
    no_thread_left,
    overlapped,
    seeing_models,
    sequential,
)

from compass_edge.frames.source import push_ring
from compass_edge.loop.events import Ended, FrameScored, Gap, Oriented, StreamEnded
from compass_edge.loop.intake import LiveTicks
from compass_edge.loop.scheduler import Policy, Scheduler
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.ticks import Tick
from compass_edge.scripted.scenario import load


@pytest.fixture(scope="module")
def tubes(tmp_path_factory: pytest.TempPathFactory) -> Film:
    return Film.shoot(load("sequence").world, tmp_path_factory.mktemp("film") / "tubes.mp4")


@pytest.mark.parametrize("execute", [sequential, overlapped])
def test_a_loop_that_is_too_slow_says_what_it_leaves_out(tubes: Film, execute: Execute) -> None:
    models = seeing_models(tubes.world, {**QUICK, "prm": 0.03})
    planned: list[int] = []
    with no_thread_left(), Camera(tubes, speed=40, backlog=6) as camera, ThreadLanes(models) as lanes:
        run = Run(tubes, camera.ticks, models, (lambda *_: planned.append(camera.ticks.stats.bytes),))
        execute(run.episode, lanes, models)
        camera.finish()
    stats = camera.ticks.stats
    assert stats.dropped > 0
    assert stats.refused == 0
    assert len(set(planned)) == 1
    gaps = run.told(Gap)
    assert gaps
    assert all("the loop fell behind" in gap.reason and gap.missed > 0 and not gap.restart for gap in gaps)
    assert isinstance(run.events[-1], Ended)
    assert run.states[-1].outcome is not None
    assert all(before.verified <= after.verified for before, after in pairwise(run.states))
    ends = run.told(StreamEnded)
    assert all(end.frame.seq == len(tubes.frames) - 1 for end in ends)


@dataclass
class Counting:
    inner: SeeingPrm
    calls: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def score(self, clips: Any) -> Any:
        self.calls += 1
        return self.inner.score(clips)


def test_a_tick_that_a_model_is_asked_about_is_not_thinned_away(tubes: Film) -> None:
    """Otherwise a slow model's replies would be for frames that are gone, and it would be asked again and again."""
    talker = seeing_models(tubes.world, {**QUICK, "orienter": 0.2, "prm": 0.04})
    prm = Counting(talker.prm)  # type: ignore[arg-type]
    models = replace(talker, prm=prm)
    with Camera(tubes, speed=40, backlog=3) as camera, ThreadLanes(models) as lanes:
        run = Run(tubes, camera.ticks, models)
        run_sequential(run.episode, lanes)
    assert camera.ticks.stats.dropped > 0
    assert run.told(Oriented)[0].frame.seq == 0
    assert prm.calls == len(run.told(FrameScored))


class Ambush(LiveTicks):
    """The next tick, or the end, comes just when the newest is asked for the `moment`-th time after nothing was new."""

    spring: Callable[[], None]
    moment: int
    asked = 0

    def after(self, seq: int) -> Tick | None:
        tick = super().after(seq)
        self.asked = 0 if tick is None else self.moment
        return tick

    def newest(self) -> Tick | None:
        self.asked += 1
        if self.asked == self.moment:
            self.spring()
        return super().newest()


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_last_tick_that_comes_at_any_moment_is_seen(tubes: Film, fresh: bool, moment: int) -> None:
    ring = push_ring(*SIZE, format=tubes.frames[0]["format"], leases=2)
    writer, ticks = ring.writer(), Ambush(ring, tubes.settings)
    left = list(tubes.frames[: 3 * EVERY + 1])

    def spring() -> None:
        for _ in range(EVERY if left else 0):
            frame = dict(left.pop(0))
            writer.push(frame.pop("picture"), **frame)
        if not left:
            ticks.end()

    ticks.spring, ticks.moment = spring, moment
    frame = dict(left.pop(0))
    writer.push(frame.pop("picture"), **frame)
    models = seeing_models(tubes.world)
    with ThreadLanes(models) as lanes:
        run = Run(tubes, ticks, models)
        scheduler = Scheduler(lanes, models.max_batch, Policy(fresh=fresh))
        watchdog = threading.Timer(20, scheduler.stop)
        watchdog.start()
        scheduler.run([run.episode])
        watchdog.cancel()
        watchdog.join()
    assert [event.frame.seq for event in run.told(FrameScored)] == [5, 10, 15]
    assert run.states[-1].outcome == "incomplete"
