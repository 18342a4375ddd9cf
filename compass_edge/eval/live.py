"""A live run: a film's frames come in real time, as from a camera, and the age of what the loop shows is looked at all along."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from compass_edge.data.episode import Episode
from compass_edge.eval.sampling import settings_at
from compass_edge.frames.native import native
from compass_edge.frames.source import push_ring
from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode as LoopEpisode
from compass_edge.loop.events import Event
from compass_edge.loop.intake import LiveTicks
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.publisher import Publisher
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image

_LOOK_S = 0.05
_HISTORY = 64  # frames that the ring keeps


@dataclass(frozen=True, slots=True)
class Live:
    episodes: int
    looks: int
    age_p50_s: float
    age_p95_s: float
    missed: int  # frames that the loop never saw


@dataclass(frozen=True, slots=True)
class _Named:
    """Live ticks whose pictures are called `key/number`, as a recording's are: an oracle knows them again."""

    ticks: LiveTicks
    key: str

    @property
    def over(self) -> bool:
        return self.ticks.over

    def after(self, seq: int) -> Tick | None:
        return self._name(self.ticks.after(seq))

    def newest(self) -> Tick | None:
        return self._name(self.ticks.newest())

    def get(self, seq: int) -> Tick:
        return self._called(self.ticks.get(seq))

    def due_ns(self) -> int | None:
        return self.ticks.due_ns()

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:
        self.ticks.let_go(keep, since, used)

    def _name(self, tick: Tick | None) -> Tick | None:
        return None if tick is None else self._called(tick)

    def _called(self, tick: Tick) -> Tick:
        return replace(tick, image=Image(f"{self.key}/{tick.mark.seq}", tick.image.pixels))


@dataclass(slots=True)
class _Watcher:
    """Looks every 50 ms from the first plan to the last verdict: how old is the newest frame behind what is shown?"""

    publisher: Publisher
    clock: Callable[[], int]
    ages: list[float] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    settled: bool = False

    def see(self, _event: Event, state: State) -> None:
        self.settled = state.plan is not None and state.plan.next_open is None

    def watch(self) -> None:
        while not self.over.wait(_LOOK_S):
            shown = self.publisher.latest
            if shown is not None and shown.steps and not self.settled:
                self.ages.append(shown.age_s(self.clock()))


def run_live(episodes: Sequence[Episode], models: Models, settings: Settings | None) -> Live:
    """With the overlapped executor. It takes as long as the films are."""
    ages: list[float] = []
    missed = 0
    for episode in episodes:
        found, lost = _ages(episode, models, settings or settings_at(episode.fps))
        ages += found
        missed += lost
    ages.sort()
    return Live(len(episodes), len(ages), _quantile(ages, 0.5), _quantile(ages, 0.95), missed)


def _ages(episode: Episode, models: Models, settings: Settings) -> tuple[list[float], int]:
    pictures = iter(episode.film.pictures(1, episode.frames))
    _, first = next(pictures)
    height, width, _ = first.shape
    ring = push_ring(width, height, history=_HISTORY, leases=2)
    writer, ticks = ring.writer(), LiveTicks(ring, settings)
    began = time.monotonic()
    writer.push(first)

    def film() -> None:
        for number, picture in pictures:
            time.sleep(max(began + number / episode.fps - time.monotonic(), 0.0))
            writer.push(picture)
        ticks.end()

    publisher = Publisher()
    watcher = _Watcher(publisher, native().monotonic_ns)
    loop = LoopEpisode.begin(
        episode.instruction,
        _Named(ticks, episode.film.key),
        models.names(),
        settings=settings,
        subscribers=(publisher.committed, watcher.see),
        source=episode.id,
    )
    threads = [threading.Thread(target=film, name="camera"), threading.Thread(target=watcher.watch, name="watcher")]
    with ThreadLanes(models) as lanes:
        for thread in threads:
            thread.start()
        try:
            Overlapped(loop, lanes, models, publisher.provisional).run()
        finally:
            watcher.over.set()
            for thread in threads:
                thread.join()
    return watcher.ages, ticks.stats.frames.missing


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")
