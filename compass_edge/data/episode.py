"""An episode: a film, the instruction it was done under, and the truth about its steps as far as it is known.

Progress is the paper's: p_t = ((a_t - 1) + p_loc) / K, reported 0 to 100. The active position a_t is one plus the number of
steps that are complete; steps follow each other without a gap, so that a step begins where the one before it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.film import Film
from compass_edge.errors import UsageError
from compass_edge.loop.plan import Completion

# What a frame does not show: something seen earlier, where in the order we are, which of several occurrences this is.
Form = Literal["state", "sequence", "recurrence"]
FORMS: tuple[Form, ...] = ("state", "sequence", "recurrence")
# What the film does with its instruction: exactly that, less, more, or something else.
Kind = Literal["positive", "early_stop", "extra_steps", "mismatch"]
# Progress within a step: by time, or by the way that was gone.
Local = Literal["time", "path"]


@dataclass(frozen=True, slots=True)
class StepTruth:
    sentence: str  # self-contained: the context is in it
    end: int  # the frame at which it is complete; past the last frame if the film stops before
    forms: tuple[Form, ...] = ()  # what it needs from the past
    before: str = ""
    tau: str = ""
    after: str = ""
    completion: Completion = "lasting"
    facts: Mapping[str, Any] = field(default_factory=dict)  # the context c_t, as data


@dataclass(frozen=True, slots=True)
class Episode:
    id: str  # unique in its data set, such as "R1/3"
    task: str
    instruction: str
    film: Film
    frames: int  # at most those of the film: the rest is cut off
    fps: float
    steps: tuple[StepTruth, ...] | None  # None: nobody has annotated it; empty: nothing of the instruction happens
    form: Form | None = None  # the main one of its task
    kind: Kind = "positive"
    tracks: Mapping[str, Any] = field(default_factory=dict)  # what else is known of every frame

    def __post_init__(self) -> None:
        if not 0 < self.frames <= self.film.frames:
            raise UsageError(
                f"Episode '{self.id}' must have between 1 and {self.film.frames} frames, those of its film, and {self.frames} came."
            )
        ends = [step.end for step in self.steps or ()]
        if any(later <= earlier for earlier, later in zip([0, *ends], ends, strict=False)):
            raise UsageError(
                f"The steps of episode '{self.id}' must end one after the other, after frame 0, and {ends} came."
            )

    @property
    def size(self) -> int:
        """K."""
        return len(self.truth)

    @property
    def truth(self) -> tuple[StepTruth, ...]:
        if self.steps is None:
            raise UsageError(f"Episode '{self.id}' is not annotated: `compass-edge data annotate` marks its steps.")
        return self.steps

    @property
    def begins(self) -> tuple[int, ...]:
        """b_k: where each step becomes the active one."""
        return (0, *(step.end for step in self.truth[:-1]))[: self.size]

    @property
    def forms(self) -> tuple[Form, ...]:
        """All that its steps need; more than one: a mix."""
        return tuple(form for form in FORMS if any(form in step.forms for step in self.steps or ()))

    @property
    def completed(self) -> int:
        """Steps that are complete when the film ends."""
        return sum(step.end < self.frames for step in self.truth)

    def active(self) -> NDArray[np.int64]:
        """a_t of every frame, from 1 to K + 1."""
        ends = np.array([step.end for step in self.truth], np.int64)
        return 1 + np.searchsorted(ends, np.arange(self.frames), side="right")

    def local(self, by: Local = "time") -> NDArray[np.float64]:
        """p_loc of every frame, 0 once all steps are done."""
        if by == "path":
            if "path" not in self.tracks:
                raise UsageError(f"Episode '{self.id}' has no path-based progress: ask for progress by time.")
            return np.asarray(self.tracks["path"][: self.frames], np.float64)
        ends = [step.end for step in self.truth]
        edges = np.array([0, *ends, np.iinfo(np.int32).max], np.float64)
        at = self.active() - 1
        frames = np.arange(self.frames)
        return np.where(at < self.size, (frames - edges[at]) / (edges[at + 1] - edges[at]), 0.0)

    def progress(self, by: Local = "time") -> NDArray[np.float64]:
        """p_t of every frame, 0 to 100. Zero throughout if nothing of the instruction happens."""
        if not self.truth:
            return np.zeros(self.frames)
        return 100.0 * (self.active() - 1 + self.local(by)) / self.size
