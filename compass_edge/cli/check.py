"""A check of `compass-edge doctor`: one thing looked at, and the cure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "missing", "optional", "info"]


@dataclass(frozen=True, slots=True)
class Check:
    """`missing` stops the main job; `optional` only costs a feature."""

    name: str
    verdict: Verdict
    detail: str
    cure: str = ""
