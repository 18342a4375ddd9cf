"""Bytes for people: a size in words, and progress bars that count megabytes."""

from __future__ import annotations

from types import TracebackType

from compass_edge.cli.progress_bar import ProgressBar

_MEGA = 1_000_000


def byte_size(count: int) -> str:
    for unit, size in (("GB", 1000 * _MEGA), ("MB", _MEGA), ("kB", 1000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


class ByteBars:
    """One bar after another: a new label ends the bar before it."""

    def __init__(self) -> None:
        self._bar: ProgressBar | None = None
        self._label = ""

    def __enter__(self) -> ByteBars:
        return self

    def update(self, label: str, done: int, total: int) -> None:
        whole = max(1, -(-total // _MEGA))
        if self._bar is None or label != self._label:
            self._close()
            self._bar, self._label = ProgressBar(f"{label}, MB", whole), label
        self._bar.update(done // _MEGA, whole)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
