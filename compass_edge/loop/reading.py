"""Reading a reply: what it makes of the episode. Any reply makes something of it, and none raises."""

from __future__ import annotations

import math

from compass_edge.loop.call import Call, Failure, Reply
from compass_edge.loop.events import Event, FrameScored, Oriented, ReplyInvalid, Reviewed, StepBegun, Verified
from compass_edge.loop.mark import Mark
from compass_edge.loop.navigator import Command, NextStep, Review, Score, Verify
from compass_edge.loop.plan import Plan, Subtask
from compass_edge.loop.state import State
from compass_edge.roles import orienter, verifier
from compass_edge.roles.reply import InvalidReply


def events_of(state: State, command: Command, call: Call, reply: Reply) -> tuple[Event, ...]:
    if isinstance(reply, Failure):
        return (ReplyInvalid(call.role, call.asked, reply.trouble, reply.detail, call.frame),)
    try:
        return _read(state, command, call, reply)
    except InvalidReply as error:
        return (ReplyInvalid(call.role, call.asked, error.trouble, error.detail, call.frame),)


def _read(state: State, command: Command, call: Call, reply: float | str) -> tuple[Event, ...]:
    rules, tau = state.settings, state.settings.tau != "nowhere"
    if isinstance(command, Score):
        return (FrameScored(call.frame, _score(reply)),)
    text = str(reply)
    if isinstance(command, Verify):
        verdict = verifier.read(text)
        return (
            Verified(
                call.frame,
                verdict.accepted,
                verdict.start,
                verdict.during,
                verdict.candidate,
                verdict.change,
                verdict.verdict,
            ),
        )
    if isinstance(command, Review):
        return (Reviewed(call.frame, orienter.read_review(text, state.the_plan, max_steps=rules.max_steps)),)
    if isinstance(command, NextStep):
        said = orienter.read_next(text, state.the_plan, tau=tau, max_steps=rules.max_steps)
        return _oriented(call.frame, said.plan, (), said.subtask)
    first = orienter.read_first(text, tau=tau, max_steps=rules.max_steps)
    if first.plan is None or first.subtask is None:
        return (Oriented(call.frame, False, first.objects, None),)
    return _oriented(call.frame, first.plan, first.objects, first.subtask)


def _oriented(frame: Mark, plan: Plan, objects: tuple[tuple[str, int], ...], subtask: Subtask) -> tuple[Event, ...]:
    step = plan.next_open
    if step is None:
        raise InvalidReply("meaning", "The plan must have an open step, and every one of its steps is satisfied.")
    return Oriented(frame, True, objects, plan), StepBegun(step.id, plan.position, frame, subtask)


def _score(reply: float | str) -> float:
    if isinstance(reply, str) or not math.isfinite(reply) or not -0.01 <= reply <= 1.01:
        raise InvalidReply("schema", f"A score must be a number from 0 to 1, and {reply!r} came.")
    return min(max(float(reply), 0.0), 1.0)
