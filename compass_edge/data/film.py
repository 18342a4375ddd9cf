"""A film: the pictures of an episode, wherever they are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Ticks

Picture = NDArray[np.uint8]  # (height, width, 3), RGB


class Film(Protocol):
    @property
    def key(self) -> str:
        """A hash of what the film shows: frame n is the picture `key/n`, in every run."""

    @property
    def frames(self) -> int: ...

    def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        """Every so manieth frame before `stop`, with its number, in order."""

    def ticks(self, settings: Settings, stop: int | None = None) -> Ticks:
        """The film as the loop reads it, as if it ended before frame `stop`. A tick's digest is `key/number`."""
