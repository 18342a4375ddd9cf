"""Replay: the events of an episode again, each checked against what the Navigator decides at that point. No models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compass_edge.errors import CompassError, IntegrityError
from compass_edge.loop.events import (
    Asked,
    CompletionProposed,
    Ended,
    EpisodeStarted,
    Event,
    FrameScored,
    Gap,
    Oriented,
    ReplyInvalid,
    Reviewed,
    Role,
    Stalled,
    StepBegun,
    StreamEnded,
    Verified,
)
from compass_edge.loop.navigator import (
    AwaitEnd,
    Begin,
    Command,
    End,
    NextStep,
    Orient,
    Propose,
    Review,
    Score,
    Stall,
    Verify,
    decide,
)
from compass_edge.loop.plan import Plan
from compass_edge.loop.state import State, apply, start

_ASKS: dict[type[Command], tuple[Role, Asked]] = {
    Orient: ("orienter", "first"),
    NextStep: ("orienter", "next"),
    Review: ("orienter", "review"),
    Score: ("prm", "score"),
    Verify: ("verifier", "verify"),
}


def checked(events: Iterable[Event], where: str = "") -> Iterator[tuple[Event, State]]:
    """Each event with the state after it. One that the Navigator's decision does not allow is an IntegrityError."""
    state: State | None = None
    for number, event in enumerate(events):
        record = f"Record {number}{where} ({type(event).__name__})"
        try:
            trouble, state = _step(state, event)
        except (CompassError, TypeError, ValueError, LookupError, AttributeError, StopIteration) as error:
            raise IntegrityError(f"{record} cannot be part of this episode: {error}. The file was altered.") from error
        if trouble:
            raise IntegrityError(
                f"{record} cannot come there: {trouble}. The file was altered, or is of another version."
            )
        yield event, state


def _step(state: State | None, event: Event) -> tuple[str, State]:
    if state is None:
        if not isinstance(event, EpisodeStarted):
            raise TypeError("the first event of an episode is EpisodeStarted")
        return "", start(event)
    if state.outcome is not None:
        return f"the episode has ended already ({state.outcome})", state
    always = (isinstance(event, Gap) and event.restart) or event == Ended("stopped")
    command = decide(state)
    if not always and not _allowed(state, command, event):
        return f"the Navigator's decision at this point is {command}", state
    return "", apply(state, event)


def _allowed(state: State, command: Command, event: Event) -> bool:
    if isinstance(event, ReplyInvalid):
        return (event.role, event.asked) == _ASKS.get(type(command))
    if isinstance(event, StreamEnded):
        return isinstance(command, (Orient, Score, AwaitEnd)) and event.frame.seq >= state.cursor.seq
    match command:
        case Orient(not_before):
            fresh = isinstance(event, Oriented) and event.frame.seq >= not_before
            return fresh and isinstance(event, Oriented) and _same_past(None, event.plan)
        case NextStep():
            return isinstance(event, Oriented) and event.plan is not None and _same_past(state.plan, event.plan)
        case Review():
            return isinstance(event, Reviewed) and _same_past(state.plan, event.plan)
        case Begin(step, subtask, from_plan):
            return event == StepBegun(step.id, state.the_plan.position, state.here, subtask, from_plan)
        case Score(after):
            return isinstance(event, (FrameScored, Gap)) and event.frame.seq > after.seq
        case Propose(frame, during, score, reason):
            return event == CompletionProposed(frame, during, score, reason)
        case Verify():
            proposal = state.the_step.proposal
            return isinstance(event, Verified) and proposal is not None and event.frame == proposal.frame
        case Stall():
            return event == Stalled(state.the_step.step_id, state.the_step.verifications)
        case End(outcome):
            return event == Ended(outcome)
        case AwaitEnd():
            return False


def _same_past(before: Plan | None, after: Plan | None) -> bool:
    """Satisfied steps are fixed: no reply of O can add one or take one away."""
    if after is None:
        return True
    done = [step for step in before.steps if step.satisfied] if before is not None else []
    return [step for step in after.steps if step.satisfied] == done == list(after.steps[: len(done)])
