"""What the tests of the intake share: a scripted feed, small pictures, a loop that looks at every tick."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from compass_edge.frames.source import Source, push_ring
from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.intake import LiveTicks
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick, Ticks

HOLDS = 4 + 4 + 4 + 16


def small(every: int) -> dict[str, Any]:
    """Holds HOLDS frames."""
    return {"settings": Settings(every=every, max_frames=4, candidate=CandidateRule(peak_memory=4)), "backlog": 4}


def picture(number: int) -> Any:
    return np.random.default_rng(number).integers(0, 256, (8, 18, 3), np.uint8)


def push(writer: Any, number: int, gap: bool = False, timed: bool = True) -> None:
    stamp: dict[str, Any] = {"pts": number, "time_base": (1, 20)} if timed else {}
    writer.push(picture(number), captured_ns=50_000_000 * number, gap_before=gap, **stamp)


class Script:
    """A feed of `frames` pictures, 20 a second, of which some follow a gap; it may break off instead of ending."""

    def __init__(
        self,
        frames: int,
        *,
        gaps: tuple[int, ...] = (),
        breaks: str = "",
        live: bool = False,
        untimed: Collection[int] = (),
        frame_rate: float = 0.0,
        truncated: bool = False,
    ) -> None:
        self.ring = push_ring(18, 8, history=2, leases=2)
        self.writer = self.ring.writer()
        self.frames, self.gaps, self.breaks, self.live = frames, gaps, breaks, live
        self.untimed, self.frame_rate, self.truncated = untimed, frame_rate, truncated
        self.done, self.state, self.failure = 0, "running", ""

    info = property(
        lambda self: {
            **dict.fromkeys(("width", "height", "rotation", "duration_s", "frames"), 0),
            **dict.fromkeys(("codec", "pixel_format"), ""),
            "frame_rate": self.frame_rate,
            "live": self.live,
        }
    )
    stats = property(lambda self: {"truncated": self.truncated and self.state == "ended"})

    def step(self) -> str:
        if self.done < self.frames:
            push(self.writer, self.done, self.done in self.gaps, self.done not in self.untimed)
            self.done += 1
        else:
            self.state, self.failure = ("failed", self.breaks) if self.breaks else ("ended", "")
        return self.state

    def seek(self, time_s: float) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


def scripted(frames: int, **options: Any) -> Source:
    return Source("script", Script(frames, **options), "pyav")


def every_tick(ticks: Ticks) -> list[Tick]:
    """As the loop does it: asks for the next one and lets go of the one before."""
    found: list[Tick] = []
    while (tick := ticks.after(found[-1].mark.seq if found else -1)) is not None:
        found.append(tick)
        ticks.let_go((), tick.mark.seq, tick.mark.seq)
    return found


def told(ticks: list[Tick]) -> list[tuple[Any, ...]]:
    return [(tick.mark, tick.image.digest, tick.gap, tick.missed) for tick in ticks]


def seqs(ticks: list[Tick]) -> list[int]:
    return [tick.mark.seq for tick in ticks]


def live_ring(**options: Any) -> tuple[Any, LiveTicks]:
    ring = push_ring(18, 8, history=options.pop("history", 8), leases=2)
    return ring.writer(), LiveTicks(ring, **options)


def every_tick_after(ticks: Ticks, seq: int) -> list[Tick]:
    found: list[Tick] = []
    while (tick := ticks.after(found[-1].mark.seq if found else seq)) is not None:
        found.append(tick)
    return found
