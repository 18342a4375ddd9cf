"""What each row of a decoder's memory holds, and how much of it a new sequence can begin with.

Keys and values can be cut off anywhere: what lies behind a row's length is never looked at. Recurrent states cannot; a new
sequence begins at the last place before the difference at which a snapshot of them was taken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.onnx.memory import Memory, Snapshot


class Rows:
    def __init__(self, memory: Memory, snapshot_bytes: int) -> None:
        self._memory = memory
        self._keys: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * memory.rows
        self._used = [0] * memory.rows  # when, in calls
        self._calls = 0
        self._snapshots: OrderedDict[tuple[int, int], Snapshot] = OrderedDict()  # row and length, oldest first
        self._most_snapshots = snapshot_bytes // memory.snapshot_bytes if memory.recurrent else 0
        self.reused = 0  # tokens that did not have to be read again

    def free(self, count: int) -> int:
        """The first of `count` rows in a row that have been unused for longest."""
        last = [max(self._used[start : start + count]) for start in range(self._memory.rows - count + 1)]
        return int(np.argmin(last))

    def begin(self, keys: NDArray[np.int64], most: int, row: int | None = None) -> tuple[int, int, int]:
        """Makes a row hold as much of the beginning of `keys` as any row does, at most `most` tokens.

        The row, how many, and how many would have been shared if there had been a snapshot at the right place. Without
        `row` it is one that lends its beginning and loses less than it lends, or else the one unused for longest.
        """
        common = [self._common(at, keys, most) for at in range(self._memory.rows)]
        usable = [self._usable(at, shared) for at, shared in enumerate(common)]
        source = int(np.argmax(usable))
        length = usable[source]
        if row is None:
            lost = len(self._keys[source]) - length
            row = source if length and lost <= length else self.free(1)
        self._take(source, row, length)
        self._keys[row] = keys[:length].copy()
        self._calls += 1
        self._used[row] = self._calls
        self.reused += length
        return row, length, max(common)

    def extend(self, row: int, keys: NDArray[np.int64] | Sequence[int]) -> None:
        """The row has read these behind what it held."""
        self._keys[row] = np.concatenate([self._keys[row], np.asarray(keys, np.int64)])

    def length(self, row: int) -> int:
        return len(self._keys[row])

    def remember(self, row: int) -> None:
        """A snapshot of the recurrent states as they are now; the oldest one goes when there are too many."""
        if not self._most_snapshots:
            return
        self._snapshots[row, self.length(row)] = self._memory.snapshot(row)
        while len(self._snapshots) > self._most_snapshots:
            self._snapshots.popitem(last=False)

    def forget(self, row: int) -> None:
        """Whatever the row holds is not what its keys say: a pass was broken off."""
        self._keys[row] = np.zeros(0, np.int64)
        for at in self._places(row):
            del self._snapshots[row, at]

    def forget_all(self) -> None:
        for row in range(self._memory.rows):
            self.forget(row)
        self.reused = 0

    def _common(self, row: int, keys: NDArray[np.int64], most: int) -> int:
        held = self._keys[row]
        reach = min(len(held), len(keys), most)
        differs = np.flatnonzero(held[:reach] != keys[:reach])
        return int(differs[0]) if differs.size else reach

    def _usable(self, row: int, common: int) -> int:
        if not self._memory.recurrent:
            return common
        return max((at for at in self._places(row) if at <= common), default=0)

    def _take(self, source: int, row: int, length: int) -> None:
        if self._memory.recurrent:
            kept = {at: self._snapshots[source, at] for at in self._places(source) if 0 < at <= length}
            for at in self._places(row):
                if row != source or at > length:
                    del self._snapshots[row, at]
            if length:
                for at, snapshot in kept.items():
                    self._snapshots[row, at] = snapshot
                    self._snapshots.move_to_end((row, at))
                self._memory.restore(row, kept[length])
            else:
                self._memory.clear(row)
        if length:
            self._memory.copy(source, row, length)

    def _places(self, row: int) -> list[int]:
        return [at for held, at in self._snapshots if held == row]
