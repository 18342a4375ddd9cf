"""Reading a reply: what it makes of the episode. Any reply makes something of it, and none raises."""

from __future__ import annotations

import math
from functools import lru_cache

from compass_edge.loop.call import Call, Failure, Reply
from compass_edge.loop.events import Event, FrameScored, Oriented, ReplyInvalid, Reviewed, Verified
from compass_edge.loop.navigator import Command, NextStep, Review, Score, Verify
from compass_edge.loop.state import State
from compass_edge.roles import orienter, verifier
from compass_edge.roles.reply import InvalidReply

# Who looks ahead reads the same replies again and again.
_first = lru_cache(maxsize=128)(orienter.read_first)
_next = lru_cache(maxsize=128)(orienter.read_next)
_review = lru_cache(maxsize=128)(orienter.read_review)
_verdict = lru_cache(maxsize=128)(verifier.read)


def event_of(state: State, command: Command, call: Call, reply: Reply) -> Event:
    if isinstance(reply, Failure):
        return ReplyInvalid(call.role, call.asked, reply.trouble, reply.detail, call.frame)
    try:
        return _read(state, command, call, reply)
    except InvalidReply as error:
        return ReplyInvalid(call.role, call.asked, error.trouble, error.detail, call.frame)


def _read(state: State, command: Command, call: Call, reply: float | str) -> Event:
    rules, tau = state.settings, state.settings.tau != "nowhere"
    if isinstance(command, Score):
        return FrameScored(call.frame, _score(reply))
    text = str(reply)
    if isinstance(command, Verify):
        verdict = _verdict(text)
        return Verified(
            call.frame,
            verdict.accepted,
            verdict.start,
            verdict.during,
            verdict.candidate,
            verdict.change,
            verdict.verdict,
        )
    if isinstance(command, Review):
        return Reviewed(call.frame, _review(text, state.the_plan, max_steps=rules.max_steps))
    if isinstance(command, NextStep):
        said = _next(text, state.the_plan, tau=tau, max_steps=rules.max_steps)
        return Oriented(call.frame, True, (), said.plan, said.subtask)
    first = _first(text, tau=tau, max_steps=rules.max_steps)
    return Oriented(call.frame, first.grounded, first.objects, first.plan, first.subtask)


def _score(reply: float | str) -> float:
    if isinstance(reply, str) or not math.isfinite(reply) or not -0.01 <= reply <= 1.01:
        raise InvalidReply("schema", f"A score must be a number from 0 to 1, and {reply!r} came.")
    return min(max(float(reply), 0.0), 1.0)
