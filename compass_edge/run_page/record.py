"""The record of a run: everything that its page shows, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compass_edge.loop.events import Role
from compass_edge.run_page.spans import Span

Point = tuple[float, float]  # seconds into the footage, progress of 100


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame that V was shown."""

    frame: int
    at_s: float
    said: str  # by V, of this frame
    picture: str = ""  # a data URL; empty: the frame was not kept


@dataclass(frozen=True, slots=True)
class Verdict:
    step: int  # k, from 1
    sentence: str
    tau: str
    reason: str  # why P proposed the frame
    score: float
    accepted: bool
    verdict: str
    change: str
    start: Seen
    during: Seen
    candidate: Seen

    @property
    def at_s(self) -> float:
        return self.candidate.at_s


@dataclass(frozen=True, slots=True)
class PlanStep:
    outcome: str
    criterion: str
    satisfied: bool
    at_s: float | None  # where it was completed


@dataclass(frozen=True, slots=True)
class RunRecord:
    title: str
    instruction: str
    outcome: str  # and what it means, in a sentence
    good: bool
    value: float
    verified: float
    duration_s: float
    plan: Sequence[PlanStep]
    points: Sequence[Point]
    verdicts: Sequence[Verdict]
    spans: Sequence[Span]  # from the beginning of the run on
    models: Mapping[Role, str]
    facts: Sequence[tuple[str, str]] = ()
    truth: Sequence[Point] = ()
    without: Sequence[Point] = ()  # the progress model alone, without context
    video: Path | None = None
    video_start_s: float = 0.0  # where in the file the footage begins
