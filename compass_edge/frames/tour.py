"""A tour: every frame of a source through the whole frame path, and what a person wants to know about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from compass_edge.frames.source import Source, SourceStats, StreamInfo

if TYPE_CHECKING:
    from compass_edge._native import Frame, Preprocessor


@dataclass(frozen=True, slots=True)
class Tour:
    """Times are CPU milliseconds a frame; `age` is the time from a frame's capture to its finished patches."""

    url: str
    backend: str
    isa: str
    dtype: str
    info: StreamInfo
    stats: SourceStats
    stopped_early: bool
    patched: int
    grid: tuple[int, int]
    columns: int
    visual_tokens: int
    decode_ms: float
    preprocess_ms: float
    age_ms_median: float
    age_ms_p99: float
    ring_slots: int
    ring_bytes: int
    gaps: int

    @property
    def realtime(self) -> float:
        """How many times faster than the video plays; 0 when its frame rate is unknown."""
        return 1e3 / (self.decode_ms + self.preprocess_ms) / self.info.frame_rate if self.info.frame_rate else 0.0


@dataclass(slots=True)
class _Costs:
    decode_s: float = 0.0
    preprocess_s: float = 0.0
    ages_s: list[float] = field(default_factory=list)


def tour(
    source: Source,
    preprocessor: Preprocessor,
    *,
    every: int = 1,
    limit: int | None = None,
    watch: Callable[[Frame], None] = lambda frame: None,
) -> Tour:
    """Decode all frames, turn every n-th into patches. Ctrl-C ends the tour and keeps what was measured."""
    info = source.info
    grid = preprocessor.grid(info.width, info.height)
    out = _patch_buffer(preprocessor, grid)
    costs = _Costs()
    stopped_early = False
    seen = 0
    try:
        while limit is None or seen < limit:
            started = time.thread_time()
            frame = source.step()
            costs.decode_s += time.thread_time() - started
            if frame is None:
                break
            if seen % every == 0:
                started = time.thread_time()
                size = preprocessor.grid(frame.width, frame.height)
                if size != grid:  # the stream changed its picture size
                    grid, out = size, _patch_buffer(preprocessor, size)
                preprocessor.run(frame, out)
                costs.preprocess_s += time.thread_time() - started
                costs.ages_s.append(frame.age_s)
            watch(frame)
            seen += 1
    except KeyboardInterrupt:
        stopped_early = True
    ages_ms = 1e3 * np.array(costs.ages_s or [0.0])
    merged = preprocessor.merge**2
    return Tour(
        url=source.url,
        backend=source.backend,
        isa=preprocessor.isa,
        dtype=preprocessor.dtype,
        info=info,
        stats=source.stats,
        stopped_early=stopped_early,
        patched=len(costs.ages_s),
        grid=grid,
        columns=preprocessor.columns,
        visual_tokens=grid[0] * grid[1] // merged,
        decode_ms=1e3 * costs.decode_s / max(seen, 1),
        preprocess_ms=1e3 * costs.preprocess_s / max(len(costs.ages_s), 1),
        age_ms_median=float(np.median(ages_ms)),
        age_ms_p99=float(np.percentile(ages_ms, 99)),
        ring_slots=source.ring.slots,
        ring_bytes=source.ring.memory_bytes,
        gaps=source.ring.stats["gaps"],
    )


def _patch_buffer(preprocessor: Preprocessor, grid: tuple[int, int]) -> np.ndarray:
    kinds = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}
    return np.empty((grid[0] * grid[1], preprocessor.columns), kinds[preprocessor.dtype])
