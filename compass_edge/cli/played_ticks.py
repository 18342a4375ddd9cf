"""Live ticks on the clock of a run, which begins with it: so that the age of a progress and the time of an event agree."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from compass_edge.frames.source import Source
from compass_edge.loop.intake import LiveTicks
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image


class PlayedTicks:
    """`since_ns`: what the run's clock is ahead of the machine's. `key`: frame n of a film is the picture `key/n`."""

    def __init__(
        self, source: Source, settings: Settings, since_ns: int, key: str = "", numbered_from: int = 0
    ) -> None:
        self._source, self._since_ns, self._key = source, since_ns, key
        self._inner = LiveTicks(source.ring, settings, source=source, numbered_from=numbered_from)

    @property
    def playing(self) -> bool:
        """Any thread: more frames may come."""
        return self._source.state not in ("ended", "failed")

    @property
    def failure(self) -> str:
        return self._inner.failure

    def after(self, seq: int) -> Tick | None:
        return self._moved(self._inner.after(seq))

    @property
    def over(self) -> bool:
        return self._inner.over

    def newest(self) -> Tick | None:
        return self._moved(self._inner.newest())

    def due_ns(self) -> int | None:
        due = self._inner.due_ns()
        return None if due is None else due + self._since_ns

    def get(self, seq: int) -> Tick:
        return self._move(self._inner.get(seq))

    def let_go(self, keep: Collection[int], since: int, used: int) -> None:
        self._inner.let_go(keep, since, used)

    def _moved(self, tick: Tick | None) -> Tick | None:
        return None if tick is None else self._move(tick)

    def _move(self, tick: Tick) -> Tick:
        mark = replace(tick.mark, captured_ns=max(tick.mark.captured_ns + self._since_ns, 0))
        digest = f"{self._key}/{mark.seq}" if self._key else tick.image.digest
        return replace(tick, mark=mark, image=Image(digest, tick.image.pixels))
