"""config.json of a checkpoint, asked value by value: what is missing or of the wrong kind gets a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compass_edge.errors import UsageError

_NOTHING = object()


class Config:
    def __init__(self, values: Mapping[str, Any], file: Path, at: str = "") -> None:
        self._values, self._file, self._at = values, file, at

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def part(self, name: str) -> Config:
        """An object inside; empty if there is none."""
        inner = self._values.get(name) or {}
        if not isinstance(inner, dict):
            raise self._wrong(name, "an object", inner)
        return Config(inner, self._file, f"{self._at}{name}.")

    def whole(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        value = self._values.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._wrong(name, f"a whole number of at least {least}", value)
        return value

    def number(self, name: str, default: float | None = None) -> float:
        value = self._values.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise self._wrong(name, "a number above 0", value)
        return float(value)

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text", value)
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def wholes(self, name: str) -> tuple[int, ...]:
        value = self._values.get(name, _NOTHING)
        if not isinstance(value, list) or not all(isinstance(item, int) and item >= 0 for item in value):
            raise self._wrong(name, "a list of whole numbers", None if value is _NOTHING else value)
        return tuple(value)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values.get(name, _NOTHING)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts", None if value is _NOTHING else value)
        return tuple(value)

    def check(self, holds: bool, name: str, expected: str) -> None:
        """What must be true of a value besides its kind."""
        if not holds:
            raise self._wrong(name, expected, self._values.get(name))

    def expect(self, name: str, value: Any, meaning: str) -> None:
        """What the exporter cannot do otherwise."""
        found = self._values.get(name, value)
        if found != value:
            raise UsageError(
                f"'{self._file}': {self._at}{name} is {found!r}, and only {value!r} is known here ({meaning})."
            )

    def _wrong(self, name: str, expected: str, found: Any) -> UsageError:
        came = "it is missing" if found is None else f"{found!r} came"
        return UsageError(
            f"'{self._file}': {self._at}{name} must be {expected}, and {came}. Is this the model's own file?"
        )
