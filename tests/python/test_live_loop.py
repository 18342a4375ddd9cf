"""The loop on real frames, a real decoder, ring and threads: the models are scripted, everything else is what a robot runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import VIDEOS, eventually
from filmed import (
    QUICK,
    Camera,
    Execute,
    Film,
    Run,
    no_thread_left,
    overlapped,
    pool,
    seeing_models,
    sequential,
)

from compass_edge.frames.source import open_source
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Ended, Event, FrameScored, Gap, ReplyInvalid, Verified
from compass_edge.loop.intake import RecordedTicks
from compass_edge.loop.journal import Journal
from compass_edge.loop.lanes import Limits
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.scripted.scenario import load
from compass_edge.scripted.world import World

EXECUTORS = pytest.mark.parametrize("execute", [sequential, overlapped, pool])


@pytest.fixture(scope="module", params=["sequence", "recurrence"])
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Film:
    return Film.shoot(load(request.param).world, tmp_path_factory.mktemp("film") / f"{request.param}.mp4")


@pytest.fixture(scope="module")
def reference(film: Film) -> list[Event]:
    """The film as a recording, one call at a time."""
    return recorded(film, sequential).events


@pytest.fixture(scope="module")
def tubes(tmp_path_factory: pytest.TempPathFactory) -> Film:
    return Film.shoot(load("sequence").world, tmp_path_factory.mktemp("film") / "tubes.mp4")


def recorded(film: Film, execute: Execute, batch: int = 1) -> Run:
    models = seeing_models(film.world, batch=batch)
    with open_source(str(film.path)) as source, ThreadLanes(models) as lanes:
        run = Run(film, RecordedTicks(source, film.settings), models)
        execute(run.episode, lanes, models)
    return run


@EXECUTORS
@pytest.mark.parametrize("batch", [1, 4])
def test_a_recording_tells_one_story(film: Film, reference: list[Event], execute: Execute, batch: int) -> None:
    with no_thread_left():
        run = recorded(film, execute, batch)
    assert run.events == reference
    assert run.states[-1].outcome == "done"
    assert run.states[-1].verified == 100


def test_a_pool_of_recordings_tells_it_each_time(film: Film, reference: list[Event]) -> None:
    models = seeing_models(film.world, QUICK, batch=4)
    sources = [open_source(str(film.path)) for _ in range(4)]
    with ThreadLanes(models, Limits(at_once=dict.fromkeys(("orienter", "prm", "verifier"), 2))) as lanes:
        runs = [Run(film, RecordedTicks(source, film.settings), models) for source in sources]
        run_pool([run.episode for run in runs], lanes, models, at_once=3)
    for source, run in zip(sources, runs, strict=True):
        source.close()
        assert run.events == reference


@EXECUTORS
def test_live_tells_the_same_as_the_recording(film: Film, reference: list[Event], execute: Execute) -> None:
    """On a machine that is busy with other things frames may be lost: then slower."""
    for speed in (20.0, 5.0, 1.0):
        models = seeing_models(film.world, QUICK)
        with no_thread_left(), Camera(film, speed=speed, history=64) as camera, ThreadLanes(models) as lanes:
            run = Run(film, camera.ticks, models)
            execute(run.episode, lanes, models)
        if not camera.lost:
            assert run.events == reference
            return
        assert run.states[-1].outcome is not None
    pytest.skip(f"this machine loses frames even in real time: {camera.lost}")


@dataclass
class Troubled:
    """A scripted model that hangs in its first few calls until nobody waits for it any more, or raises in them."""

    inner: Any
    trouble: str
    calls: int
    waited: Callable[[], bool] = lambda: True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def ask(self, questions: Any, on_text: Any, cancelled: Callable[[], bool]) -> Any:
        self._suffer(cancelled)
        return self.inner.ask(questions, on_text, cancelled)

    def score(self, clips: Any) -> Any:
        self._suffer(self.waited)
        return self.inner.score(clips)

    def _suffer(self, over: Callable[[], bool]) -> None:
        self.calls -= 1
        if self.calls < 0:
            return
        if self.trouble == "raises":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        assert eventually(over)


@pytest.mark.parametrize("role", ["orienter", "prm", "verifier"])
@pytest.mark.parametrize("trouble", ["hangs", "raises"])
@pytest.mark.parametrize("execute", [sequential, overlapped])
def test_a_model_in_trouble_stops_neither_the_run_nor_the_camera(
    tubes: Film, role: str, trouble: str, execute: Execute
) -> None:
    """Its first two calls: one may be forgiven, both make the loop go on without the reply."""
    late: list[Event] = []  # P is not told that nobody waits: this tells it
    talker = seeing_models(tubes.world, QUICK)
    models = replace(talker, **{role: Troubled(getattr(talker, role), trouble, 2, lambda: len(late) > 0)})
    deadline_s = {**dict.fromkeys(("orienter", "prm", "verifier"), 20.0), role: 0.2 if trouble == "hangs" else 20.0}
    limits = Limits(deadline_s=deadline_s)

    def see(event: Event, _state: State) -> None:
        if isinstance(event, ReplyInvalid):
            late.append(event)

    with no_thread_left(), Camera(tubes, speed=8) as camera, ThreadLanes(models, limits) as lanes:
        run = Run(tubes, camera.ticks, models, (see,))
        execute(run.episode, lanes, models)
        camera.finish()
    invalid = run.told(ReplyInvalid)
    assert {(event.role, event.trouble) for event in invalid} == {(role, "late" if trouble == "hangs" else "missing")}
    assert run.states[-1].outcome is not None
    assert len(run.told(Ended)) == 1
    assert camera.ticks.stats.frames.missing == 0


def test_a_model_that_never_returns_is_a_fault_and_can_be_stopped(tubes: Film) -> None:
    """Its worker is lost until the model returns; the frames come in all the while."""
    back = threading.Event()
    talker = seeing_models(tubes.world, QUICK)
    models = replace(talker, verifier=Troubled(talker.verifier, "hangs", 1, back.is_set))
    models.verifier.ask = lambda *_: back.wait()  # type: ignore[method-assign]
    limits = Limits(deadline_s=dict.fromkeys(("orienter", "prm", "verifier"), 0.5))
    with no_thread_left(), Camera(tubes, speed=20) as camera, ThreadLanes(models, limits) as lanes:
        run = Run(tubes, camera.ticks, models)
        executor = Overlapped(run.episode, lanes, models)

        def host_program() -> None:
            camera.finish()
            while not executor.fault:
                time.sleep(0.01)
            executor.stop()

        host = threading.Thread(target=host_program)
        host.start()
        executor.run()
        host.join()
        back.set()
    assert run.states[-1].outcome == "stopped"
    assert camera.ticks.stats.frames.missing == 0


class Killed(Exception):
    pass


@pytest.mark.parametrize("at", [45, 105, 175])
def test_a_robot_that_was_switched_off_goes_on_live(tubes: Film, tmp_path: Path, at: int) -> None:
    path = tmp_path / "episode.journal"
    models = seeing_models(tubes.world, QUICK)

    def kill(event: Event, _state: State) -> None:
        if isinstance(event, FrameScored) and event.frame.seq >= at:
            raise Killed

    with Journal.create(path) as journal, Camera(tubes, speed=20) as camera, ThreadLanes(models) as lanes:
        run = Run(tubes, camera.ticks, models, (lambda event, _: journal.append(event), kill))
        with pytest.raises(Killed):
            Overlapped(run.episode, lanes, models).run()

    journal, recording = Journal.resume(path)
    assert list(recording.events) == run.events
    last = max(event.frame.seq for event in recording.events if hasattr(event, "frame"))
    later, states = list(recording.events), list[State]()

    def see(event: Event, state: State) -> None:
        later.append(event)
        states.append(state)
        journal.append(event)

    with (
        journal,
        Camera(tubes, speed=20, first=last + 4, numbered_from=last + 1) as camera,
        ThreadLanes(models) as lanes,
    ):
        episode = Episode.resume(list(recording.events), camera.ticks, models.names(), (see,))
        first = camera.ticks.after(-1)
        assert first is not None
        assert first.mark.seq == last + 1
        episode.restart(first, "the process was restarted")
        Overlapped(episode, lanes, models).run()
    gaps = [event for event in later if isinstance(event, Gap)]
    assert [(gap.restart, gap.frame.seq) for gap in gaps] == [(True, last + 1)]
    assert states[-1].outcome == "done"
    assert all(before.verified <= after.verified for before, after in pairwise([*run.states, *states]))
    assert sum(isinstance(event, Verified) and event.accepted for event in later) == 3
    assert journal.count == len(later)


def never(ticks: int) -> World:
    """O has a plan, and nothing of it ever happens."""
    world = load("sequence").world
    return replace(world, ticks=ticks, happenings=())


@pytest.mark.parametrize("execute", [sequential, overlapped, pool])
def test_a_real_video_runs_to_its_end(execute: Execute) -> None:
    """Every frame a tick: more of them than may be held at a time."""
    path = VIDEOS / "robomme" / "pick_red_2x.mp4"
    if not path.exists():
        pytest.skip("the shared videos are not here")
    models = seeing_models(never(1), sight=lambda frame: int(frame.seq))
    with open_source(str(path)) as source, ThreadLanes(models) as lanes:
        settings = Settings(every=1, max_frames=16)
        ticks = RecordedTicks(source, settings)
        events: list[Event] = []
        episode = Episode.begin(
            "Pick it up", ticks, models.names(), settings=settings, subscribers=(lambda event, _: events.append(event),)
        )
        execute(episode, lanes, models)
        frames = source.stats.frames
    assert ticks.failure == ""
    assert frames > 300
    scored = [event.frame.seq for event in events if isinstance(event, FrameScored)]
    assert scored == list(range(1, frames))
    assert episode.state.outcome == "incomplete"
    assert episode.state.verified == 0
