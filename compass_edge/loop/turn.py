"""A turn: what the Navigator's command asks of the models, and what their reply makes of the episode.

Shared by all executors, and by speculation, which runs the same turns on imagined states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from compass_edge.loop.active import ActiveStep, Scored
from compass_edge.loop.call import Call
from compass_edge.loop.events import (
    Asked,
    CompletionProposed,
    Ended,
    Event,
    Gap,
    Role,
    Stalled,
    StepBegun,
    StreamEnded,
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
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.ticks import Tick, Ticks
from compass_edge.models import Clip, Question
from compass_edge.roles import orienter, verifier

Names: TypeAlias = Mapping[Role, str]


class Pause(Enum):
    """The next tick has not come yet."""

    UNTIL_TICK = "until tick"


@dataclass(frozen=True, slots=True)
class Turn:
    """What is to be done: a call to make, or the event that follows without one, or a tick to wait for."""

    command: Command
    need: Call | Event | Pause


def turn(state: State, ticks: Ticks, names: Names) -> Turn:
    command = decide(state)
    return Turn(command, _need(state, command, ticks, names))


def _need(state: State, command: Command, ticks: Ticks, names: Names) -> Call | Event | Pause:
    match command:
        case Orient(not_before):
            tick = ticks.after(not_before - 1)
            return _no_tick(state, ticks) if tick is None else _ask_first(state, tick, names)
        case NextStep():
            return _ask(state, "next", ticks.get(state.here.seq), names)
        case Review():
            return _ask(state, "review", ticks.get(state.here.seq), names)
        case Begin(step, subtask, from_plan):
            return StepBegun(step.id, state.the_plan.position, state.here, subtask, from_plan)
        case Score(after):
            tick = ticks.after(after.seq)
            if tick is None:
                return _no_tick(state, ticks)
            if tick.gap and state.gap_at != tick.mark.seq:
                return Gap(tick.mark, tick.missed, tick.gap)
            return score_call(longer(state.the_step, tick, state.settings), tick, ticks, names)
        case Propose(frame, during, score, reason):
            return CompletionProposed(frame, during, score, reason)
        case Verify():
            return _ask_verifier(state, ticks, names)
        case Stall():
            active = state.the_step
            return Stalled(active.step_id, active.verifications)
        case AwaitEnd():
            newest = ticks.newest()
            ticks.after(state.cursor.seq if newest is None else newest.mark.seq)  # lets a recording go by
            return _no_tick(state, ticks)
        case End(outcome):
            return Ended(outcome)


def _no_tick(state: State, ticks: Ticks) -> Event | Pause:
    if not ticks.over:  # asked before anything else: it speaks of what `after` has just looked at
        return Pause.UNTIL_TICK
    newest = ticks.newest()
    last = state.cursor if newest is None or newest.mark.seq < state.cursor.seq else newest.mark
    return StreamEnded(last)


def _ask_first(state: State, tick: Tick, names: Names) -> Call:
    rules = state.settings
    body = orienter.first(
        state.instruction, tick.image, tau=rules.tau != "nowhere", max_steps=rules.max_steps, repair=state.repair
    )
    return Call("orienter", "first", body, tick.mark, body.digest(names["orienter"]))


def _ask(state: State, asked: Asked, tick: Tick, names: Names) -> Call:
    rules, plan = state.settings, state.the_plan
    body: Question
    if asked == "next":
        body = orienter.next_step(
            state.instruction,
            plan,
            state.memory,
            tick.image,
            tau=rules.tau != "nowhere",
            max_steps=rules.max_steps,
            repair=state.repair,
        )
    else:
        body = orienter.review(
            state.instruction, plan, state.memory, tick.image, max_steps=rules.max_steps, repair=state.repair
        )
    return Call("orienter", asked, body, tick.mark, body.digest(names["orienter"]))


def _ask_verifier(state: State, ticks: Ticks, names: Names) -> Call:
    active = state.the_step
    if active.proposal is None:
        raise TypeError("V is asked about a proposal, and there is none.")
    start, during, candidate = (
        ticks.get(mark.seq) for mark in (active.began, active.proposal.during, active.proposal.frame)
    )
    body = verifier.question(
        active.subtask,
        state.memory,
        start.image,
        during.image,
        candidate.image,
        tau=state.settings.tau == "everywhere",
    )
    return Call("verifier", "verify", body, candidate.mark, body.digest(names["verifier"]))


def score_call(active: ActiveStep, tick: Tick, ticks: Ticks, names: Names) -> Call:
    """P's call for the tick, which is the newest of the step's clip already."""
    seqs = (active.began.seq, *(scored.frame.seq for scored in active.clip[:-1]))
    body = Clip(active.subtask.sentence, (*(ticks.get(seq).image for seq in seqs), tick.image))
    return Call("prm", "score", body, tick.mark, body.digest(names["prm"]))


def longer(active: ActiveStep, tick: Tick, settings: Settings) -> ActiveStep:
    """The step with this tick in its clip, before anybody knows its score."""
    return active.longer(Scored(tick.mark, 0.0), settings.every, settings.max_frames)
