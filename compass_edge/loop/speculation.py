"""Looking ahead: which calls the Navigator will ask for if things go as they seem to.

The same turns as the real ones, on imagined states. Nothing here can change an episode: a call made early is an ordinary
call, and counts only if the Navigator then asks for exactly that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass

from compass_edge.loop.call import Call, Failure
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import FrameScored, Role, Verified
from compass_edge.loop.freshness import begun
from compass_edge.loop.memo import Memo
from compass_edge.loop.navigator import Command, NextStep, Orient, Score, Verify
from compass_edge.loop.reading import event_of
from compass_edge.loop.state import State, apply
from compass_edge.loop.turn import Pause, Turn, longer, score_call, turn
from compass_edge.loop.written import Written
from compass_edge.roles import orienter, verifier

# Turns to imagine: an acceptance, the next step's scores, and what they lead to.
DEPTH = 64


@dataclass(frozen=True, slots=True)
class Reached:
    """How far known replies lead beyond the events of an episode whose turn has not come."""

    base: State
    state: State
    left: int  # turns


@dataclass(frozen=True, slots=True)
class Foresight:
    """What may be looked at: the episode, the replies so far, and those that are being written."""

    episode: Episode
    memo: Memo
    written: Written
    ticks_ahead: int  # of P, beyond the tick that is needed
    doubts: bool  # imagine a rejection too, not only what is likelier
    admitted: bool  # the episode's turn has come
    reached: MutableMapping[Episode, Reached]  # how far known replies led when somebody last looked
    idle: Callable[[Role], bool]  # whether there is anybody to make such a call

    def calls(self) -> Iterator[Call]:
        """Calls that are not known yet and may be needed soon, the likeliest first.

        The call that the episode waits for is not among them, unless its turn has not come yet.
        """
        base = self.episode.state
        at = self.reached.get(self.episode)
        if at is None or at.base is not base:
            at = Reached(base, base, DEPTH)
        state, left, _ = self._follow(at.state, at.left)
        self.reached[self.episode] = Reached(base, state, left)
        return self._imagine(state, left, real=self.admitted and state is base)

    def _follow(self, state: State, left: int) -> tuple[State, int, Turn | None]:
        """As far as known replies lead, in so many turns at most, and the turn that then needs one."""
        while left > 0 and state.outcome is None:
            this = turn(state, self.episode.ticks, self.episode.names)
            if isinstance(this.need, Pause):
                break
            if isinstance(this.need, Call):
                reply = self.memo.peek(this.need.key)
                if reply is None or isinstance(reply, Failure):
                    return state, left, this
                state = apply(state, event_of(state, this.command, this.need, reply))
            else:
                state = apply(state, this.need)
            left -= 1
        return state, left, None

    def _imagine(self, state: State, left: int, *, real: bool, scores_only: bool = False) -> Iterator[Call]:
        state, left, this = self._follow(state, left)
        if this is None or not isinstance(this.need, Call) or (scores_only and this.need.role != "prm"):
            return
        if not real:
            yield this.need
        if isinstance(this.command, Score) and self.idle("prm"):
            yield from self._scores(state)
        for guess in self._guesses(state, this.command, this.need):
            # Of a step that O is still describing only the sentence is known: enough for P, not for V.
            yield from self._imagine(guess, left - 1, real=False, scores_only=this.need.role == "orienter")

    def _guesses(self, state: State, command: Command, call: Call) -> Iterator[State]:
        """What the reply may turn out to be, from what is written of it already."""
        fields = self.written.get(call.key, {})
        if isinstance(command, Verify):
            seen = verifier.peek(dict(fields))
            if seen is not None:  # all that an acceptance adds to the prompts is on paper
                yield apply(state, Verified(call.frame, True, "", "", seen, "", "done"))
            if self.doubts:
                yield apply(state, Verified(call.frame, False, "", "", "", "", "not_done"))
        elif isinstance(command, Score) and state.active is not None:
            if state.active.watch.held == state.settings.candidate.hold - 1 > 0:  # one more such score, and V is asked
                yield apply(state, FrameScored(call.frame, state.active.local))
        elif isinstance(command, NextStep):
            peeked = orienter.peek_next(dict(fields), state.the_plan, max_steps=state.settings.max_steps)
            if peeked is not None:
                yield begun(state, call.frame, *peeked)
        elif isinstance(command, Orient):
            peeked = orienter.peek_first(dict(fields), max_steps=state.settings.max_steps)
            if peeked is not None:
                yield begun(state, call.frame, *peeked)

    def _scores(self, state: State) -> Iterator[Call]:
        """The ticks after the one that is being scored."""
        active, seq = state.the_step, state.cursor.seq
        for place in range(self.ticks_ahead + 1):
            tick = self.episode.ticks.after(seq)
            if tick is None or not self.idle("prm"):
                return
            active, seq = longer(active, tick, state.settings), tick.mark.seq
            if place:
                yield score_call(active, tick, self.episode.ticks, self.episode.names)
