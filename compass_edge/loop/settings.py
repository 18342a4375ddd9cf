"""Settings of the loop: everything that can change an event, and nothing that only changes when it comes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from compass_edge.errors import UsageError
from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.middle import MiddleRule

# The paper's ablation of the expected transition: V is told it; only O writes it; nobody does.
Tau = Literal["everywhere", "orienter", "nowhere"]
_RULES: dict[str, type[CandidateRule | MiddleRule]] = {"candidate": CandidateRule, "middle": MiddleRule}


@dataclass(frozen=True, slots=True)
class Settings:
    every: int = 10  # a tick is the first frame of each run of so many
    max_frames: int = 128  # frames of a step that a clip may hold: longer steps are thinned
    max_verifications: int = 8  # a step
    max_steps: int = 32  # a plan
    max_attempts: int = 2  # of a call: O repairs an invalid reply once, a late or missing reply is asked for again
    look_again: int = 32  # ticks until O looks again for objects that were not there
    max_looks: int = 8
    tau: Tau = "everywhere"
    candidate: CandidateRule = field(default_factory=CandidateRule)
    middle: MiddleRule = field(default_factory=MiddleRule)

    def __post_init__(self) -> None:
        for name in ("every", "max_verifications", "max_steps", "max_attempts", "look_again", "max_looks"):
            if not (isinstance(getattr(self, name), int) and getattr(self, name) >= 1):
                raise UsageError(f"{name} must be a whole number of at least 1, and {getattr(self, name)!r} came.")
        if not (isinstance(self.max_frames, int) and self.max_frames >= 4):
            raise UsageError(
                f"max_frames must be a whole number of at least 4 (a start, a middle, a candidate and one to thin), "
                f"and {self.max_frames!r} came."
            )
        if self.tau not in ("everywhere", "orienter", "nowhere"):
            raise UsageError(f"tau must be everywhere, orienter or nowhere, and {self.tau!r} came.")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        known = {field.name for field in fields(cls)}
        for key in values:
            if key not in known:
                raise UsageError(f"There is no setting '{key}'. There are: {', '.join(sorted(known))}.")
        rules = {
            name: rule if isinstance(rule := values.get(name, {}), kind) else kind.from_dict(rule)
            for name, kind in _RULES.items()
        }
        return cls(**{**values, **rules})

    def overlaid(self, path: str) -> Settings:
        """With what a JSON file says otherwise, for example one that `compass-edge calibrate --out` wrote."""
        try:
            values = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"The settings '{path}' must be a readable JSON file: {error}.") from error
        if not isinstance(values, dict) or not all(isinstance(values.get(name, {}), dict) for name in _RULES):
            raise UsageError(f"The settings '{path}' must be a JSON object, and so must its {' and '.join(_RULES)}.")
        rules = {name: {**asdict(getattr(self, name)), **values.get(name, {})} for name in _RULES}
        try:
            return Settings.from_dict({**asdict(self), **values, **rules})
        except UsageError as error:
            raise UsageError(f"The settings '{path}': {error}") from error
