"""A progress bar on stderr: only for people, only in a terminal, never in the output."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class ProgressBar:
    def __init__(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total or None
        self._shown = sys.stderr.isatty()
        self._started = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> ProgressBar:
        return self

    def update(self, done: int, total: int | None = None) -> None:
        """`total`: when it is not known before the first update."""
        self._total = total or self._total
        now = time.monotonic()
        if not self._shown or now - self._drawn < 0.1:
            return
        self._drawn = now
        rate = done / max(now - self._started, 1e-9)
        if self._total is None:
            text = f"{self._label} {done} frames, {rate:.0f}/s"
        else:
            share = min(done / self._total, 1.0)
            filled = round(24 * share)
            bar = "#" * filled + "." * (24 - filled)
            left = (self._total - done) / rate if rate else 0.0
            pace = (
                f"{rate:.0f}/s"
                if rate >= 1
                else f"about {left / 60:.0f} min left"
                if left >= 90
                else f"about {left:.0f} s left"
            )
            text = f"{self._label} [{bar}] {done}/{self._total}, {pace}"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
