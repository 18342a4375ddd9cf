"""The middle rule: which frame between a step's start and its candidate V is shown.

It must show the step being carried out: a button is down for two frames of a film of ten a second. Where P's scores are calibrated
(0.9: nine tenths of the step are behind it) they say when that is: the frame whose score lies nearest to how far such a step has
come when it shows itself. Without such numbers it is half way in time, and for a brief interaction where P's curve rose most.

V may have been shown the wrong moment: after each rejection it is another frame, ever further from the first in time, earlier ones
first; of a lasting state every fourth frame first, because neighbours show the same. Those whose scores are next nearest are no
help: they lie together, where P's curve is flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from compass_edge.errors import UsageError
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Completion

if TYPE_CHECKING:
    from compass_edge.loop.active import Scored
_LATE = 2.5  # times as far off
_STRIDE = 4  # ticks from one frame that is shown of a lasting state to the next: what is brief may be seen in one alone


@dataclass(frozen=True, slots=True)
class MiddleRule:
    lasting: float | None = None  # the score at which a lasting state is being brought about
    brief: float | None = None  # at which a brief interaction happens
    observation: float | None = None  # at which what is to be seen can be seen

    def __post_init__(self) -> None:
        for name in ("lasting", "brief", "observation"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 < value <= 1):
                raise UsageError(f"middle.{name} must be a score above 0 and up to 1, or null, and {value!r} came.")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MiddleRule:
        known = {field.name for field in fields(cls)}
        for key in values:
            if key not in known:
                raise UsageError(f"There is no setting 'middle.{key}'. There are: {', '.join(sorted(known))}.")
        return cls(**values)

    def choose(self, between: Sequence[Scored], completion: Completion, rejections: int) -> Mark:
        """Of the frames between, at least one, the one to show."""
        aim = {"lasting": self.lasting, "brief": self.brief, "observation": self.observation}[completion]
        if aim is not None:
            places = range(len(between))
            nearest = min(places, key=lambda at: (off(between[at].score, aim), -at))
            stride = _STRIDE if completion == "lasting" else 1
            around = sorted(places, key=lambda at: (abs(at - nearest) % stride, abs(at - nearest), at > nearest))
            return between[around[min(rejections, len(around) - 1)]].frame
        if completion != "brief":
            return between[len(between) // 2].frame
        rises = [b.score - a for a, b in zip((0.0, *(scored.score for scored in between)), between, strict=False)]
        return between[rises.index(max(rises))].frame


def off(score: float, aim: float) -> float:
    """Too late is worse than too early: what comes after a step is over goes on and on."""
    return aim - score if score <= aim else _LATE * (score - aim)
