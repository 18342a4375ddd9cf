"""What a scenario must come to, and the tally of a run that is held against it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from compass_edge.loop.events import Event, Gap, ReplyInvalid, Verified
from compass_edge.loop.progress import Phase, progress_of
from compass_edge.loop.state import State
from compass_edge.scripted.node import Node

_OUTCOMES = ("done", "incomplete", "stalled", "ungrounded", "unplanned", "stopped")
_NEEDED = "outcome value verified accepted rejected phases"
_COUNTS = ("accepted", "rejected", "steps", "revision", "gaps", "invalid")
_NEAR = 0.05  # values are written with one digit behind the point


@dataclass(slots=True)
class Tally:
    """A subscriber: what a run came to, counted event by event."""

    events: int = 0
    accepted: int = 0
    rejected: int = 0  # by a verdict, or because V had no valid one
    invalid: int = 0  # replies
    gaps: int = 0
    highest: float = 0.0  # value that was ever shown
    phases: list[str] = field(default_factory=list)  # each change of it
    state: State | None = None

    def __call__(self, event: Event, state: State) -> None:
        before = self.state.active if self.state is not None else None
        if before is not None and state.active is not None:
            self.rejected += state.active.verifications - before.verifications
        self.events += 1
        self.accepted += isinstance(event, Verified) and event.accepted
        self.invalid += isinstance(event, ReplyInvalid)
        self.gaps += isinstance(event, Gap)
        now = progress_of(state)
        self.highest = max(self.highest, now.value)
        if not self.phases or self.phases[-1] != now.phase.value:
            self.phases.append(now.phase.value)
        self.state = state

    def result(self) -> dict[str, Any]:
        """All that an `expect` block may speak of."""
        if self.state is None:
            return {}
        now = progress_of(self.state)
        counted = {
            name: getattr(self, name) for name in ("accepted", "rejected", "gaps", "invalid", "highest", "phases")
        }
        told = {"value": now.value, "verified": now.verified, "steps": now.steps, "revision": now.revision}
        return {"outcome": self.state.outcome, **told, **counted}


@dataclass(frozen=True, slots=True)
class Expect:
    outcome: str
    value: float
    verified: float
    accepted: int
    rejected: int
    phases: tuple[str, ...]
    steps: int | None = None  # None: whatever it is
    revision: int | None = None
    gaps: int | None = None
    invalid: int | None = None
    highest: float | None = None

    @classmethod
    def read(cls, node: Node) -> Expect:
        known = [one.name for one in fields(cls)]
        given = node.fields(_NEEDED, " ".join(name for name in known if name not in _NEEDED.split()))
        read: dict[str, Any] = {"outcome": given["outcome"].choice(*_OUTCOMES)}
        read["phases"] = tuple(phase.choice(*(one.value for one in Phase)) for phase in given["phases"].listed())
        for name in ("value", "verified", "highest"):
            if name in given:
                read[name] = given[name].number(0, 100)
        for name in _COUNTS:
            if name in given:
                read[name] = given[name].whole(0)
        return cls(**read)

    def differences(self, tally: Tally) -> list[str]:
        """Empty when the run came to what was expected."""
        found, result = list[str](), tally.result()
        for one in fields(self):
            wanted, came = getattr(self, one.name), result.get(one.name)
            if wanted is None or (list(wanted) == came if one.name == "phases" else wanted == came):
                continue
            if isinstance(wanted, float) and isinstance(came, float) and abs(wanted - came) <= _NEAR:
                continue
            wanted, came = (", ".join(x) if isinstance(x, (list, tuple)) else x for x in (wanted, came))
            found.append(f"{one.name} should be {wanted} and is {came}")
        return found
