"""Features of frames, each computed once for as long as it is kept. Bounded in bytes; the one unused for longest goes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Features:
    """What the decoder reads for a frame."""

    embeddings: NDArray[Any]  # [tokens, hidden]
    taps: NDArray[Any] | None  # [taps, tokens, hidden]
    rows: int  # of the grid that the tokens are laid out in
    columns: int

    @property
    def nbytes(self) -> int:
        return int(self.embeddings.nbytes + (0 if self.taps is None else self.taps.nbytes))


class FeatureStore:
    """May be shared by models with one tower (RoboMeter's is that of its base model): keys name tower and frame."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], Features] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def room(self) -> int:
        """Bytes that can be put in before anything goes."""
        return self._limit - self._bytes

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: tuple[str, str]) -> Features | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: tuple[str, str], features: Features) -> None:
        """What is larger than the whole store is not kept."""
        with self._lock:
            if key in self._kept or features.nbytes > self._limit:
                return
            self._kept[key] = features
            self._bytes += features.nbytes
            while self._bytes > self._limit:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.nbytes
