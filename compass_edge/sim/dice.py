"""Dice: chance that is the same everywhere. Python promises that `random.Random(seed).random()` never changes: all is made of it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


class Dice:
    def __init__(self, *seed: object) -> None:
        digest = hashlib.sha256("/".join(str(part) for part in seed).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def whole(self, low: int, high: int) -> int:
        """Both ends count."""
        return low + int(self._random.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def choice(self, items: Sequence[_Item]) -> _Item:
        return items[int(self._random.random() * len(items))]

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        rest = list(items)
        return [rest.pop(int(self._random.random() * len(rest))) for _ in items]
