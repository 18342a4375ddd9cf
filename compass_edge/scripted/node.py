"""A value in a file, with the place where it stands: whoever reads it can say what is wrong and where."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compass_edge.errors import UsageError


@dataclass(frozen=True, slots=True)
class Node:
    file: str
    path: str
    value: Any

    def wrong(self, expected: str) -> UsageError:
        came = json.dumps(self.value, ensure_ascii=False)
        came = came if len(came) <= 60 else came[:57] + "..."
        return UsageError(f"{self.file}: {self.path or 'the file'} must be {expected}, and {came} came.")

    def entries(self) -> dict[str, Node]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        dot = "." if self.path else ""
        return {key: Node(self.file, f"{self.path}{dot}{key}", value) for key, value in self.value.items()}

    def fields(self, needed: str, optional: str = "") -> dict[str, Node]:
        """An object with these keys, of which the optional ones may be missing."""
        entries, place = self.entries(), self.path or "the file"
        for key in entries:
            if key not in needed.split() + optional.split():
                known = ", ".join(f"{needed} {optional}".split())
                raise UsageError(f"{self.file}: {place} has a key '{key}' that means nothing. There are: {known}.")
        for key in needed.split():
            if key not in entries:
                raise UsageError(f"{self.file}: {place} must have the key '{key}', and it is missing.")
        return entries

    def listed(self) -> list[Node]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [Node(self.file, f"{self.path}[{at}]", value) for at, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.wrong("a text that is not empty")
        return self.value

    def whole(self, least: int, most: int | None = None) -> int:
        if type(self.value) is not int or self.value < least or (most is not None and self.value > most):
            raise self.wrong(f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}"))
        return self.value

    def number(self, least: float, most: float = math.inf) -> float:
        if type(self.value) not in (int, float) or not least <= self.value <= most or math.isinf(self.value):
            raise self.wrong(f"a number of at least {least:g}" + ("" if math.isinf(most) else f" and at most {most:g}"))
        return float(self.value)

    def choice(self, *names: str) -> str:
        if not isinstance(self.value, str) or self.value not in names:
            raise self.wrong(f"one of {', '.join(names)}")
        return self.value

    def step(self, known: Mapping[int, Any]) -> int:
        if type(self.value) is not int or self.value not in known:
            raise self.wrong(f"the id of a step ({_ids(known)})")
        return self.value

    def by_step(self, known: Container[int] | Mapping[int, Any]) -> dict[int, Node]:
        """An object whose keys are ids of steps: JSON has them as text."""
        found: dict[int, Node] = {}
        for key, node in self.entries().items():
            if not (key.isascii() and key.isdecimal() and int(key) in known):
                raise UsageError(f"{self.file}: a key of {self.path} must be the id of a step, and '{key}' came.")
            found[int(key)] = node
        return found


def _ids(known: Iterable[int]) -> str:
    return ", ".join(str(step) for step in sorted(known)) or "there is none"
