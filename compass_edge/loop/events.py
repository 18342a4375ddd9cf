"""The event stream: everything that happened to an episode, in order. State is a fold of it and nothing else.

Events hold no clock: which executor ran, and how fast, leaves no trace in them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from compass_edge.errors import IntegrityError
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Plan, Step, Subtask

Role = Literal["orienter", "prm", "verifier"]
Asked = Literal["first", "next", "review", "score", "verify"]
Trouble = Literal["schema", "meaning", "late", "missing"]
Outcome = Literal["done", "incomplete", "stalled", "ungrounded", "unplanned", "stopped"]


@dataclass(frozen=True, slots=True)
class EpisodeStarted:
    instruction: str
    frame: Mark
    settings: dict[str, Any]
    models: dict[str, str]
    source: str = ""
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Oriented:
    """O looked. Without a plan (`grounded` is False) the instruction's objects are not there.

    With one, `subtask` is what O says of its next open step.
    """

    frame: Mark
    grounded: bool
    objects: tuple[tuple[str, int], ...]
    plan: Plan | None
    subtask: Subtask | None
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class StepBegun:
    step_id: int
    k: int
    frame: Mark
    subtask: Subtask
    from_plan: bool = False  # O had no valid words for it: the plan's own are used
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class FrameScored:
    frame: Mark
    score: float
    commits: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class CompletionProposed:
    frame: Mark
    during: Mark
    score: float
    reason: Literal["high", "peak", "end"]
    commits: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Verified:
    frame: Mark
    accepted: bool
    start: str  # what each frame shows
    during: str
    candidate: str
    change: str
    verdict: str
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Reviewed:
    frame: Mark
    plan: Plan
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class ReplyInvalid:
    role: Role
    asked: Asked
    trouble: Trouble
    detail: str
    frame: Mark
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames that never came, seen when the first one after them is needed."""

    frame: Mark  # the first one after the gap
    missed: int  # frames; 0 when nobody knows how many
    reason: str
    restart: bool = False  # the process was away: the step at hand begins again here
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class StreamEnded:
    frame: Mark  # the last one
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Stalled:
    step_id: int
    verifications: int
    commits: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Ended:
    outcome: Outcome
    commits: ClassVar[bool] = True


Event: TypeAlias = (
    EpisodeStarted
    | Oriented
    | StepBegun
    | FrameScored
    | CompletionProposed
    | Verified
    | Reviewed
    | ReplyInvalid
    | Gap
    | StreamEnded
    | Stalled
    | Ended
)
_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (EpisodeStarted, Oriented, StepBegun, FrameScored, CompletionProposed, Verified, Reviewed, ReplyInvalid,
                 Gap, StreamEnded, Stalled, Ended)
}  # fmt: skip


def to_dict(event: Event) -> dict[str, Any]:
    """For JSON: the kind and the fields."""
    return {"event": type(event).__name__, **asdict(event)}


def from_dict(values: dict[str, Any]) -> Event:
    """The event that `to_dict` gave these values for. Anything else is an IntegrityError that says what is wrong."""
    kind = _KINDS.get(str(values.get("event")))
    if kind is None:
        raise IntegrityError(f"An event's kind must be one of {', '.join(_KINDS)}, and {values.get('event')!r} came.")
    try:
        read: dict[str, Any] = {key: _READERS.get(key, _same)(value) for key, value in values.items() if key != "event"}
        event: Event = kind(**read)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise IntegrityError(f"A {kind.__name__} event does not have the fields it should: {error}.") from error
    return event


def _same(value: Any) -> Any:
    return value


def _mark(value: dict[str, Any]) -> Mark:
    return Mark(**value)


def _plan(value: dict[str, Any] | None) -> Plan | None:
    return None if value is None else Plan(**{**value, "steps": tuple(Step(**step) for step in value["steps"])})


_READERS: dict[str, Any] = {
    "frame": _mark,
    "during": lambda value: (
        _mark(value) if isinstance(value, dict) else value
    ),  # a frame when proposed, words when verified
    "plan": _plan,
    "subtask": lambda value: None if value is None else Subtask(**value),
    "objects": lambda value: tuple((str(name), int(count)) for name, count in value),
}
