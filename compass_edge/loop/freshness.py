"""Freshness: P's view of the newest tick, to show how things stand before the events have caught up with it.

What is shown so is provisional: it takes no part in any decision. It is exact for the step in flight, and the same call that
the Navigator will ask for later; for a step that O has not described yet it goes by the plan's own words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compass_edge.loop.call import Call
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Oriented, StepBegun, Verified
from compass_edge.loop.mark import Mark
from compass_edge.loop.memo import Memo
from compass_edge.loop.navigator import NextStep, Orient, Verify, in_the_plans_words
from compass_edge.loop.plan import Plan, Subtask
from compass_edge.loop.reading import event_of
from compass_edge.loop.state import State, apply
from compass_edge.loop.turn import longer, score_call, turn
from compass_edge.loop.written import Written
from compass_edge.roles import orienter, verifier


@dataclass(frozen=True, slots=True)
class Fresh:
    call: Call
    state: State  # under which its score is to be read


def fresh(episode: Episode, memo: Memo, written: Written) -> Iterator[Fresh]:
    """For the step in flight; and for the one after it once V has written what an acceptance would go by."""
    newest = episode.ticks.newest()
    if newest is None or episode.ticks.due_ns() is None:  # a recording has nothing that is newer than its reader
        return
    for state in _outlooks(episode, memo, written):
        if newest.mark.seq <= state.cursor.seq:
            continue
        active, tick = state.the_step, episode.ticks.after(state.cursor.seq)
        while tick is not None and tick.mark.seq <= newest.mark.seq:
            active, tick = longer(active, tick, state.settings), episode.ticks.after(tick.mark.seq)
        yield Fresh(score_call(active, newest, episode.ticks, episode.names), state)


def _outlooks(episode: Episode, memo: Memo, written: Written) -> Iterator[State]:
    yield from _in_flight(episode, episode.state, memo, written)
    this = turn(episode.state, episode.ticks, episode.names) if not episode.ended else None
    if this is not None and isinstance(this.command, Verify) and isinstance(this.need, Call):
        seen = verifier.peek(dict(written.get(this.need.key, {})))
        if seen is not None:
            accepted = apply(episode.state, Verified(this.need.frame, True, "", "", seen, "", "done"))
            yield from _in_flight(episode, accepted, memo, written)


def _in_flight(episode: Episode, state: State, memo: Memo, written: Written) -> Iterator[State]:
    """The state with a step in flight: the one there is, or the next one as far as it is known."""
    if state.active is not None:
        yield state
        return
    this = turn(state, episode.ticks, episode.names)
    if not isinstance(this.command, NextStep | Orient) or not isinstance(this.need, Call):
        return
    reply = memo.peek(this.need.key)
    told = event_of(state, this.command, this.need, reply) if reply is not None else None
    if isinstance(told, Oriented) and told.plan is not None and told.subtask is not None:
        yield begun(state, this.need.frame, told.plan, told.subtask.sentence)
        return
    fields, most = dict(written.get(this.need.key, {})), state.settings.max_steps
    if isinstance(this.command, Orient):
        peeked = orienter.peek_first(fields, max_steps=most)
    else:
        plan = state.the_plan
        peeked = orienter.peek_next(fields, plan, max_steps=most) or (plan, in_the_plans_words(plan).sentence)
    if peeked is not None:
        yield begun(state, this.need.frame, *peeked)


def begun(state: State, frame: Mark, plan: Plan, sentence: str) -> State:
    """With the plan's next step in flight, as far as P is concerned: it is told no more than the sentence."""
    step = plan.next_open
    if step is None:
        return state
    subtask = Subtask(sentence, "", "", "")
    oriented = apply(state, Oriented(frame, True, (), plan, subtask))
    return apply(oriented, StepBegun(step.id, plan.position, frame, subtask))
