"""An episode under way: the one place where its state lives, and the one door through which events pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from compass_edge.errors import CompassError
from compass_edge.loop.call import Call
from compass_edge.loop.events import Ended, EpisodeStarted, Event, Gap
from compass_edge.loop.memo import Memo
from compass_edge.loop.navigator import AwaitEnd
from compass_edge.loop.reading import event_of
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State, apply, fold, start
from compass_edge.loop.ticks import Tick, Ticks
from compass_edge.loop.turn import Names, Pause, turn

# Everything that watches: journal, view, curve, publisher. Called in order, on the executor's thread: with the journal
# first, nobody has seen what a power cut takes back.
Subscriber = Callable[[Event, State], None]


class Episode:
    """Built by `begin` or `resume`; moved on by an executor."""

    def __init__(self, state: State, ticks: Ticks, names: Names, subscribers: tuple[Subscriber, ...]) -> None:
        self.state, self.ticks, self.names = state, ticks, names
        self._subscribers = subscribers
        self._asked: Call | None = None  # until its reply is here, nothing else can follow

    @classmethod
    def begin(
        cls,
        instruction: str,
        ticks: Ticks,
        names: Names,
        *,
        settings: Settings | None = None,
        subscribers: tuple[Subscriber, ...] = (),
        source: str = "",
    ) -> Episode:
        first = ticks.after(-1)
        if first is None:
            raise CompassError(
                "An episode begins with its first frame, and none has come. Wait for it, or check the source."
            )
        event = EpisodeStarted(
            instruction,
            first.mark,
            asdict(settings or Settings()),
            dict(names.items()),
            source,
        )
        episode = cls(start(event), ticks, names, subscribers)
        episode._tell(event)
        return episode

    @classmethod
    def resume(
        cls, events: list[Event], ticks: Ticks, names: Names, subscribers: tuple[Subscriber, ...] = ()
    ) -> Episode:
        """Goes on where these events end, on ticks that reach back to their frames. If those are lost, `restart` it."""
        episode = cls(fold(events), ticks, names, subscribers)
        keep, since, used = episode.state.keeps()
        tick = ticks.after(-1)
        while tick is not None and tick.mark.seq < episode.state.cursor.seq:
            ticks.let_go(keep, min(tick.mark.seq, since), used)
            tick = ticks.after(tick.mark.seq)
        return episode

    def subscribe(self, subscriber: Subscriber) -> None:
        """Told of the events from now on, after those who came before."""
        self._subscribers = (*self._subscribers, subscriber)

    def restart(self, first: Tick, reason: str) -> None:
        """The frames since the last event are lost: the step in flight begins again at this one.

        What was completed meanwhile was seen by nobody, and V will not count what is there from the start.
        """
        self.commit(Gap(first.mark, 0, reason, restart=True))

    @property
    def ended(self) -> bool:
        return self.state.outcome is not None

    def commit(self, event: Event) -> None:
        self.state = apply(self.state, event)
        self._tell(event)
        self.ticks.let_go(*self.state.keeps())

    def stop(self) -> None:
        """The host wants no more of it."""
        if not self.ended:
            self.commit(Ended("stopped"))

    def advance(self, memo: Memo, now_ns: int) -> Call | Pause | None:
        """Goes as far as the known replies lead: to a call that must be made, a tick to wait for, or the end (None)."""
        if self._asked is not None and memo.peek(self._asked.key) is None:
            return self._asked
        self._asked = None
        while not self.ended:
            this = turn(self.state, self.ticks, self.names)
            if isinstance(this.need, Pause):
                if isinstance(this.command, AwaitEnd) and (newest := self.ticks.newest()) is not None:
                    self.ticks.let_go((), newest.mark.seq, newest.mark.seq)
                return this.need
            if not isinstance(this.need, Call):
                self.commit(this.need)
                continue
            reply = memo.ask(this.need.key, now_ns)
            if reply is None:
                self._asked = this.need
                keep, since, used = self.state.keeps()
                self.ticks.let_go(keep, since, max(used, this.need.frame.seq))  # its tick is in use from now on
                return this.need
            self.commit(event_of(self.state, this.command, this.need, reply))
        return None

    def _tell(self, event: Event) -> None:
        for subscriber in self._subscribers:
            subscriber(event, self.state)
