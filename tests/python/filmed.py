"""A scripted world on film: numbered frames in a real file, a camera that pushes them into a real ring, and models that read
the number from the picture and answer as the script says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conftest import eventually

from compass_edge.frames.clip import read_number, write_clip
from compass_edge.frames.source import open_source, push_ring
from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode, Subscriber
from compass_edge.loop.events import Event
from compass_edge.loop.intake import LiveTicks
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.ticks import Ticks
from compass_edge.models import Cancelled, Clip, Image, OnText, Question
from compass_edge.scripted.models import scripted_models
from compass_edge.scripted.world import World

EVERY = 5
SIZE = (160, 96)
RATE = 30
QUICK = {"orienter": 0.02, "prm": 0.002, "verifier": 0.008}
# The tick that a picture shows.
Sight = Callable[[Any], int]


def number_shown(frame: Any) -> int:
    return read_number(frame.planes[0]) // EVERY


@dataclass(frozen=True)
class SeeingPrm:
    inner: Any
    sight: Sight

    @property
    def name(self) -> str:
        return str(self.inner.name)

    @property
    def max_batch(self) -> int:
        return int(self.inner.max_batch)

    def score(self, clips: Sequence[Clip]) -> Sequence[Any]:
        seen = [Clip(clip.sentence, tuple(_seen(frame, self.sight) for frame in clip.frames)) for clip in clips]
        scores: Sequence[Any] = self.inner.score(seen)
        return scores


@dataclass(frozen=True)
class SeeingTalker:
    inner: Any
    sight: Sight

    @property
    def name(self) -> str:
        return str(self.inner.name)

    @property
    def max_batch(self) -> int:
        return int(self.inner.max_batch)

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        seen = [
            replace(
                question,
                parts=tuple(_seen(part, self.sight) if isinstance(part, Image) else part for part in question.parts),
            )
            for question in questions
        ]
        texts: Sequence[str] = self.inner.ask(seen, on_text, cancelled)
        return texts


def _seen(image: Image, sight: Sight) -> Image:
    return Image(image.digest, sight(image.pixels))


def seeing_models(
    world: World, seconds: Mapping[str, float] | None = None, batch: int = 1, sight: Sight = number_shown
) -> Models:
    told = scripted_models(world, seconds, batch)
    return Models(SeeingTalker(told.orienter, sight), SeeingPrm(told.prm, sight), SeeingTalker(told.verifier, sight))


@dataclass(frozen=True)
class Film:
    """The file, and its frames as they were decoded: what a camera would have pushed."""

    world: World
    path: Path
    frames: tuple[dict[str, Any], ...]

    @classmethod
    def shoot(cls, world: World, path: Path) -> Film:
        width, height = SIZE
        write_clip(path, frames=(world.ticks - 1) * EVERY + 1, width=width, height=height, rate=RATE)
        frames = []
        with open_source(str(path)) as source:
            for frame in source:
                with frame:
                    assert frame.time is not None
                    assert read_number(frame.planes[0]) == frame.seq
                    about = {key: getattr(frame, key) for key in ("format", "width", "height", "matrix", "range")}
                    planes = [plane.copy() for plane in frame.planes]
                    frames.append({"picture": planes, **about, "captured_ns": round(frame.time * 1e9)})
        return cls(world, path, tuple(frames))

    @property
    def settings(self) -> Settings:
        return Settings(every=EVERY)


class Camera:
    """Pushes the film from frame `first` on from a thread of its own, `speed` times as fast as it was shot. Waits for nobody."""

    def __init__(self, film: Film, *, speed: float, history: int = 512, first: int = 0, **options: Any) -> None:
        width, height = SIZE
        ring = push_ring(width, height, format=film.frames[0]["format"], history=history, leases=2)
        self.ticks = LiveTicks(ring, options.pop("settings", film.settings), **options)
        self._writer, self._frames, self._period_s = ring.writer(), film.frames[first:], 1 / (RATE * speed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._push, name="camera")
        self.pushed = 0

    def _push(self) -> None:
        began = time.monotonic()
        for place, frame in enumerate(self._frames):
            if self._stopping.wait(max(began + place * self._period_s - time.monotonic(), 0)):
                break
            self._writer.push(frame["picture"], **{key: value for key, value in frame.items() if key != "picture"})
            self.pushed += 1
        self.ticks.end()

    def __enter__(self) -> Camera:
        self._thread.start()
        while self.ticks.after(-1) is None:
            time.sleep(0.001)
        return self

    def finish(self) -> None:
        """Until it has pushed everything, whatever the loop does."""
        self._thread.join()
        assert self.pushed == len(self._frames)

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def lost(self) -> str:
        """What never reached the loop; empty when everything did."""
        stats = self.ticks.stats
        lost = {"missing": stats.frames.missing, "dropped": stats.dropped, "refused": stats.refused}
        return ", ".join(f"{count} {name}" for name, count in lost.items() if count)


class Run:
    """One episode and everything that was told of it."""

    def __init__(self, film: Film, ticks: Ticks, models: Models, subscribers: tuple[Subscriber, ...] = ()) -> None:
        self.events: list[Event] = []
        self.states: list[State] = []
        self.episode = Episode.begin(
            film.world.instruction,
            ticks,
            models.names(),
            settings=film.settings,
            subscribers=(self.see, *subscribers),
        )

    def see(self, event: Event, state: State) -> None:
        self.events.append(event)
        self.states.append(state)

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


Execute = Callable[[Episode, ThreadLanes, Models], Any]


def sequential(episode: Episode, lanes: ThreadLanes, _models: Models) -> None:
    run_sequential(episode, lanes)


def overlapped(episode: Episode, lanes: ThreadLanes, models: Models) -> None:
    Overlapped(episode, lanes, models, lambda progress: None).run()


def pool(episode: Episode, lanes: ThreadLanes, models: Models) -> None:
    run_pool([episode], lanes, models)


@contextmanager
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert eventually(lambda: set(threading.enumerate()) <= before)
