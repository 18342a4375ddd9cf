"""The fields of a JSON object, read as what they should be. Whatever is otherwise names the file, the key and the expectation."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compass_edge.errors import IntegrityError

_MISSING: Any = object()


def read_json(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IntegrityError(f"'{path}' cannot be read: {error.strerror}.") from error
    if not data.strip():
        raise IntegrityError(f"'{path}' should be JSON, and it is empty.")
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"'{path}' should be JSON, and it cannot be read: {error}.") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


class Fields:
    """`where` begins the sentence of every error: a file, and what in it."""

    def __init__(self, raw: Any, where: str) -> None:
        if not isinstance(raw, dict):
            raise IntegrityError(f"{where} must be a JSON object, and a {_kind(raw)} came.")
        self.raw, self.where = raw, where

    def only(self, known: Sequence[str]) -> None:
        for key in self.raw:
            if key not in known:
                raise IntegrityError(f"{self.where}: there is no key '{key}'. There are: {', '.join(known)}.")

    def text(self, key: str, default: Any = _MISSING, *, filled: bool = False) -> Any:
        value = self._get(key, default)
        if value is default:
            return value
        if not isinstance(value, str) or (filled and not value.strip()):
            self._fail(key, "a text" + (" that is not empty" if filled else ""), value)
        return value

    def whole(self, key: str, default: Any = _MISSING, *, least: int) -> Any:
        value = self._get(key, default)
        if value is default:
            return value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self._fail(key, f"a whole number of at least {least}", value)
        return value

    def number(self, key: str, default: Any = _MISSING, *, above: float = -math.inf) -> Any:
        value = self._get(key, default)
        if value is default:
            return value
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or not math.isfinite(value) or value <= above:
            self._fail(key, "a number" + (f" above {above:g}" if above > -math.inf else ""), value)
        return float(value)

    def choice(self, key: str, choices: Sequence[str], default: Any = _MISSING) -> Any:
        value = self._get(key, default)
        if value is not default and value not in choices:
            self._fail(key, "one of " + ", ".join(choices), value)
        return value

    def mapping(self, key: str, default: Any = _MISSING) -> Any:
        value = self._get(key, default)
        if value is not default and not isinstance(value, dict):
            self._fail(key, "a JSON object", value)
        return value

    def items(self, key: str, default: Any = _MISSING) -> Any:
        value = self._get(key, default)
        if value is not default and not isinstance(value, list):
            self._fail(key, "a list", value)
        return value

    def objects(self, key: str) -> list[Fields]:
        return [Fields(item, f"{self.where}: {key}[{place}]") for place, item in enumerate(self.items(key))]

    def _get(self, key: str, default: Any) -> Any:
        value = self.raw.get(key, _MISSING)
        if value is _MISSING or (value is None and default is not _MISSING):
            if default is _MISSING:
                raise IntegrityError(f"{self.where}: the key '{key}' is missing.")
            return default
        return value

    def _fail(self, key: str, expected: str, value: Any) -> None:
        shown = repr(value)
        raise IntegrityError(
            f"{self.where}: {key} must be {expected}, and {shown if len(shown) <= 80 else shown[:77] + '...'} came."
        )


def _kind(value: Any) -> str:
    names = {list: "list", str: "text", int: "number", float: "number", bool: "true or false", type(None): "null"}
    return names.get(type(value), type(value).__name__)
