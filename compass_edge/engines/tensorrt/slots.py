"""Which frame's features are in which slot of the device. The one unused for longest gives way; one in use never does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from compass_edge.errors import UsageError


class Slots:
    def __init__(self, count: int) -> None:
        self._count = count
        self._held: OrderedDict[str, int] = OrderedDict()
        self._free = list(range(count - 1, -1, -1))
        self._in_use: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def free(self) -> int:
        return len(self._free)

    def use(self, keys: Iterable[str]) -> None:
        """These stay, once they are there, until others are used."""
        self._in_use = frozenset(keys)

    def get(self, key: str) -> int | None:
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key]

    def take(self) -> int:
        """An empty one, which nobody knows until it is put."""
        if self._free:
            return self._free.pop()
        for key in self._held:
            if key not in self._in_use:
                return self._held.pop(key)
        raise UsageError(
            f"One call came with more different frames than the device has room for, which is {self._count}. Send fewer, or open the "
            "model with more vision_bytes."
        )

    def put(self, key: str, slot: int) -> None:
        self._held[key] = slot

    def give_back(self, slots: Iterable[int]) -> None:
        """Taken and not filled."""
        self._free.extend(slots)

    def clear(self) -> None:
        self._free.extend(self._held.values())
        self._held.clear()
