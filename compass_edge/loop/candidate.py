"""The candidate rule: when P's curve of a step says that the step may be complete. Online, fed score by score.

A candidate is a frame whose score is high and has been so for a while, or the peak before a sustained drop (the hand has
left, the object is out of sight again): the end of it, where the curve stays as high for some ticks. The third kind, the end of the stream, is the Navigator's to see.

A candidate only asks V to look. Too early costs a verification, of which a step has eight, and a rejected candidate makes
the rule wait before the next one, each time longer. `compass-edge calibrate` fits the thresholds to a model's curves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from compass_edge.errors import UsageError
from compass_edge.loop.mark import Mark

Reason = Literal["high", "peak"]


@dataclass(frozen=True, slots=True)
class Candidate:
    frame: Mark
    score: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Watch:
    """What the rule remembers of the curve so far."""

    held: int = 0  # ticks in a row with a high score
    peak: Candidate | None = None
    edge: Candidate | None = None  # the last frame that was as good as the peak
    peak_age: int = 0  # ticks since the peak
    fallen: int = 0  # ticks in a row well below the peak
    quiet: int = 0  # ticks until the next candidate may be proposed
    rejections: int = 0


@dataclass(frozen=True, slots=True)
class CandidateRule:
    high: float = 0.9  # a score is high from here on
    hold: int = 2  # ticks it must stay so
    peak: float = 0.6  # lower peaks are noise
    drop: float = 0.2  # how far below its peak the curve has dropped
    drop_hold: int = 3  # ticks it must stay down
    peak_memory: int = 64  # ticks after which a peak is forgotten, and the frames since it can be
    retry_after: int = 4  # ticks of quiet after the first rejection
    retry_growth: float = 1.5  # each further rejection makes the quiet so much longer
    plateau: float = 0.0  # how far below its peak a score is still as good: of such frames the last one is proposed

    def __post_init__(self) -> None:
        for name in ("high", "peak", "drop"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value <= 1):
                raise UsageError(f"candidate.{name} must be a score above 0 and up to 1, and {value!r} came.")
        if not (isinstance(self.plateau, (int, float)) and 0 <= self.plateau < self.drop):
            raise UsageError(
                f"candidate.plateau must be at least 0 and less than candidate.drop ({self.drop}), and {self.plateau!r} came."
            )
        for name in ("hold", "drop_hold", "peak_memory", "retry_after"):
            value = getattr(self, name)
            if not (isinstance(value, int) and value >= 1):
                raise UsageError(f"candidate.{name} must be a whole number of ticks, at least 1, and {value!r} came.")
        if not (isinstance(self.retry_growth, (int, float)) and 1 <= self.retry_growth <= 4):
            raise UsageError(f"candidate.retry_growth must be between 1 and 4, and {self.retry_growth!r} came.")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> CandidateRule:
        known = {field.name for field in fields(cls)}
        for key in values:
            if key not in known:
                raise UsageError(f"There is no setting 'candidate.{key}'. There are: {', '.join(sorted(known))}.")
        return cls(**values)

    def observe(self, watch: Watch, frame: Mark, score: float) -> tuple[Watch, Candidate | None]:
        """One more score of the step at hand."""
        held = watch.held + 1 if score >= self.high else 0
        peak, edge, age, fallen = watch.peak, watch.edge, watch.peak_age + 1, watch.fallen
        if peak is not None and age > self.peak_memory:
            peak, edge, fallen = None, None, 0
        here = Candidate(frame, score, "peak")
        if score >= self.peak and (peak is None or score >= peak.score):
            peak, edge, age, fallen = here, here, 0, 0
        elif peak is not None:
            fallen = fallen + 1 if score <= peak.score - self.drop else 0
            edge = here if score >= peak.score - self.plateau else edge
        quiet = max(watch.quiet - 1, 0)
        seen = Watch(held, peak, edge, age, fallen, quiet, watch.rejections)
        if quiet:
            return seen, None
        if held >= self.hold:
            return seen, Candidate(frame, score, "high")
        if peak is not None and fallen >= self.drop_hold:
            return seen, edge
        return seen, None

    def rejected(self, watch: Watch) -> Watch:
        """V did not accept the candidate: wait, and look for another one."""
        quiet = math.ceil(self.retry_after * self.retry_growth**watch.rejections)
        return Watch(held=watch.held, quiet=quiet, rejections=watch.rejections + 1)

    def interrupted(self, watch: Watch) -> Watch:
        """Frames are missing: nothing counts as held across a gap."""
        return replace(watch, held=0, fallen=0)
