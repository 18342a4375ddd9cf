"""A mark: a frame, as events and state speak of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    seq: int
    captured_ns: int
