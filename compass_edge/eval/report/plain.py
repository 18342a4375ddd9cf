"""The report's values as JSON can hold them: the same numbers as the page, without the curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from compass_edge.eval.report.data import ReportData

_LEFT_OUT = {"curves", "dots"}  # thousands of numbers that make no sense to read; the cache has them


def plain(data: ReportData) -> dict[str, Any]:
    values: dict[str, Any] = _plain(data)
    return values


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.name not in _LEFT_OUT
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no nan
    return value
