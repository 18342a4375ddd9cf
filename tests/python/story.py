"""Episodes told by hand: events in the fewest words, and the state that they come to."""

from __future__ import annotations

from typing import Any

from compass_edge.loop.events import (
    Asked,
    CompletionProposed,
    EpisodeStarted,
    Event,
    FrameScored,
    Gap,
    Oriented,
    ReplyInvalid,
    Reviewed,
    Role,
    StepBegun,
    StreamEnded,
    Trouble,
    Verified,
)
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Completion, Plan, Step, Subtask
from compass_edge.loop.state import State, fold

EVERY = 10
_ROLES: dict[Asked, Role] = {
    "first": "orienter",
    "next": "orienter",
    "review": "orienter",
    "score": "prm",
    "verify": "verifier",
}


def mark(tick: int) -> Mark:
    return Mark(EVERY * tick, 10**9 * tick)


def plan(size: int, done: int = 0, revision: int = 1) -> Plan:
    """Steps 1, 2, 3 and so on."""
    steps = tuple(
        Step(number, f"outcome {number}", f"criterion {number}", number <= done) for number in range(1, size + 1)
    )
    return Plan(steps, revision, size)


def words(step: int, completion: Completion = "lasting") -> Subtask:
    return Subtask(f"Do {step}.", f"before {step}", f"tau {step}", f"after {step}", completion)


def started(**settings: Any) -> EpisodeStarted:
    return EpisodeStarted("do it", mark(0), settings, {})


def nothing_there(tick: int) -> Oriented:
    return Oriented(mark(tick), False, (), None, None)


def oriented(tick: int, size: int, done: int = 0, revision: int = 1) -> Oriented:
    return Oriented(mark(tick), True, (("cup", 1),), plan(size, done, revision), words(done + 1))


def begun(step: int, tick: int, completion: Completion = "lasting") -> StepBegun:
    return StepBegun(step, step, mark(tick), words(step, completion))


def scored(first: int, *scores: float) -> list[Event]:
    """One after the other, from that tick on."""
    return [FrameScored(mark(first + at), score) for at, score in enumerate(scores)]


def proposed(tick: int, during: int = 0) -> CompletionProposed:
    return CompletionProposed(mark(tick), mark(during), 0.9, "high")


def verified(tick: int, accepted: bool = True) -> Verified:
    return Verified(
        mark(tick), accepted, "start", "during", f"seen at {tick}", "change", "done" if accepted else "not_done"
    )


def completed(tick: int) -> list[Event]:
    """The step in flight is scored once, proposed and accepted, all at that tick."""
    return [*scored(tick, 0.95), proposed(tick), verified(tick)]


def turned_down(tick: int) -> list[Event]:
    """The same, and rejected."""
    return [*scored(tick, 0.5), proposed(tick), verified(tick, accepted=False)]


def reviewed(tick: int, size: int, done: int, revision: int = 1) -> Reviewed:
    return Reviewed(mark(tick), plan(size, done, revision))


def invalid(asked: Asked, trouble: Trouble, tick: int = 0) -> ReplyInvalid:
    return ReplyInvalid(_ROLES[asked], asked, trouble, f"{asked} was {trouble}", mark(tick))


def gap(tick: int, restart: bool = False) -> Gap:
    return Gap(mark(tick), EVERY, "frames were lost", restart)


def over(tick: int) -> StreamEnded:
    return StreamEnded(mark(tick))


def story(*parts: Event | list[Event], **settings: Any) -> list[Event]:
    """The events of an episode that began at tick 0."""
    events: list[Event] = [started(**settings)]
    for part in parts:
        events += part if isinstance(part, list) else [part]
    return events


def after(*parts: Event | list[Event], **settings: Any) -> State:
    """The state that they come to."""
    return fold(story(*parts, **settings))
