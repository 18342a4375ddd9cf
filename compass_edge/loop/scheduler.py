"""The scheduler behind `overlapped` and `pool`: needed calls first, then calls that will be needed, on lanes that are idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from compass_edge.loop.breaker import Breaker
from compass_edge.loop.call import Call, Failure
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Role
from compass_edge.loop.freshness import Fresh, fresh
from compass_edge.loop.lanes import ROLES, Finished, Job, Lanes, Signal
from compass_edge.loop.memo import Memo
from compass_edge.loop.speculation import Foresight, Reached
from compass_edge.loop.ticks import Tick

# P has seen a frame that is newer than the events: the state to read the score under, and the score.
OnFresh = Callable[[Episode, Fresh, float], None]


@dataclass(frozen=True, slots=True)
class Policy:
    at_once: int = 1  # episodes
    speculate: bool = True
    ticks_ahead: int = 8  # of P, beyond the one that is needed
    doubts: bool = True  # while V rules, P goes on with the step in flight in case of a rejection
    coming: int = 0  # episodes behind those, whose first calls may be made early
    fresh: bool = False  # P looks at the newest tick between two of the backlog


class Scheduler:
    def __init__(
        self, lanes: Lanes, max_batch: Callable[[Role], int], policy: Policy, on_fresh: OnFresh | None = None
    ) -> None:
        self._lanes, self._max_batch, self._policy, self._on_fresh = lanes, max_batch, policy, on_fresh
        self.memo = Memo()
        self.breakers = {role: Breaker() for role in ROLES}
        self._written: dict[str, dict[str, Any]] = {}
        self._running: list[Job] = []
        self._fresh: dict[str, tuple[Episode, Fresh]] = {}
        self._fresh_turn = True
        self._coming: deque[Episode] = deque()  # not admitted yet: their calls are made early if a lane is idle
        self._reached: WeakKeyDictionary[Episode, Reached] = WeakKeyDictionary()
        self._since: dict[Episode, tuple[Role, int]] = {}  # the model that an episode waits for, and since when
        self._newest: dict[Episode, Tick | None] = {}  # before the turn: what comes during it is news too
        self._alone: set[str] = set()  # calls that failed together with others
        self._stopping = False

    def stop(self) -> None:
        """Any thread: the run ends after the current turn; every episode is told so."""
        self._stopping = True

    @property
    def fault(self) -> bool:
        """Any thread: a model does not answer."""
        return any(self.breakers[role].tripped or self._lanes.stuck(role) for role in ROLES)

    def run(self, episodes: Iterable[Episode]) -> None:
        waiting, active = iter(episodes), list[Episode]()
        while True:
            needs = self._advance(active, waiting)
            coming = [*active, *self._coming]
            if not active:
                return
            if self._stopping:
                for episode in active:
                    episode.stop()
                return
            self._dispatch(coming, needs)
            self._await_news(active, needs)

    def _advance(self, active: list[Episode], waiting: Iterator[Episode]) -> dict[Episode, Call]:
        """Every episode as far as it goes, new ones for those that ended. Returns the calls they now wait for."""
        needs: dict[Episode, Call] = {}
        place = 0
        while True:
            while len(active) < self._policy.at_once and (new := self._take(waiting)) is not None:
                active.append(new)
            if place == len(active):
                return needs
            self._newest[active[place]] = active[place].ticks.newest()
            need = active[place].advance(self.memo, self._lanes.now_ns())
            if need is None:
                self._since.pop(active[place], None)
                del self._newest[active[place]]
                del active[place]
                continue
            if isinstance(need, Call):
                needs[active[place]] = need
            place += 1

    def _wanted(self, needs: dict[Episode, Call]) -> dict[Role, dict[str, Call]]:
        """Calls that are needed and not on their way, the most urgent first."""
        wanted: dict[Role, dict[str, Call]] = {role: {} for role in ROLES}
        for _, need in sorted(needs.items(), key=lambda item: self._urgency(*item)):
            if not self.memo.pending(need.key):
                wanted[need.role][need.key] = need
        return wanted

    def _take(self, waiting: Iterator[Episode]) -> Episode | None:
        """The next episode, and a look at those behind it."""
        while len(self._coming) <= self._policy.coming and (new := next(waiting, None)) is not None:
            self._coming.append(new)
        return self._coming.popleft() if self._coming else None

    def _urgency(self, episode: Episode, need: Call) -> tuple[float, int]:
        """Who goes first, so that no model starves: P serves the step that is nearest to a candidate, O a review last."""
        role, since = self._since.get(episode, ("", 0))
        if role != need.role:
            since = self._lanes.now_ns()
            self._since[episode] = (need.role, since)
        if need.role == "prm" and episode.state.active is not None:
            return -episode.state.active.local, since
        return float(need.asked == "review"), since

    def _dispatch(self, active: list[Episode], needs: dict[Episode, Call]) -> None:
        wanted = self._wanted(needs)
        self._give_up(active, needs)
        if self._policy.fresh:
            self._dispatch_fresh(active, needs, bool(wanted["prm"]))
        early = self._early(active, wanted)
        for role in ROLES:
            needed, soon = list(wanted[role].values()), early[role]
            while (needed or soon) and self._free(role):
                self._start(role, self._batch(role, needed, soon), set(wanted[role]))

    def _dispatch_fresh(self, active: list[Episode], needs: dict[Episode, Call], others_wait: bool) -> None:
        """Takes turns with the calls that are needed, so that neither starves."""
        if not self._free("prm"):
            return
        if others_wait and not self._fresh_turn:
            self._fresh_turn = True
            return
        for episode in active:
            for found in fresh(episode, self.memo, self._written):
                if not self.memo.known(found.call.key) and found.call.key not in self._keys(needs):
                    self._fresh[found.call.key] = (episode, found)
                    self.memo.begin(found.call, self._lanes.now_ns(), "shown")
                    self._launch(Job("prm", (found.call,)))
                    self._fresh_turn = False
                    return

    def _early(self, active: list[Episode], wanted: dict[Role, dict[str, Call]]) -> dict[Role, list[Call]]:
        """Calls that will be needed, for the lanes that would otherwise be idle."""
        early: dict[Role, list[Call]] = {role: [] for role in ROLES}
        if not self._policy.speculate:
            return early
        room = {
            role: self._lanes.room(role) * self._max_batch(role) - len(wanted[role]) if self._free(role) else 0
            for role in ROLES
        }
        for episode in sorted(active, key=lambda one: one not in self._coming):  # theirs are sure to be needed
            if not any(left > 0 for left in room.values()):
                break
            for call in self._foresight(episode, lambda role: room[role] > 0).calls():
                if room[call.role] > 0 and not self.memo.known(call.key) and call.key not in wanted[call.role]:
                    early[call.role].append(call)
                    room[call.role] -= 1
        return early

    def _give_up(self, active: list[Episode], needs: dict[Episode, Call]) -> None:
        """What was started early and will not be needed after all: V has decided otherwise."""
        doubtful = [job for job in self._running if job.role != "prm" and not self._is_needed(job, needs)]
        if not doubtful:
            return
        foreseen = {call.key for episode in active for call in self._foresight(episode).calls()}
        for job in doubtful:
            if not any(call.key in foreseen for call in job.calls):
                self._cancel(job)

    def _foresight(self, episode: Episode, idle: Callable[[Role], bool] = lambda role: role != "prm") -> Foresight:
        return Foresight(
            episode,
            self.memo,
            self._written,
            self._policy.ticks_ahead,
            self._policy.doubts,
            episode not in self._coming,
            self._reached,
            idle,
        )

    def _is_needed(self, job: Job, needs: dict[Episode, Call]) -> bool:
        return any(call.key in self._keys(needs) for call in job.calls)

    def _cancel(self, job: Job) -> None:
        self._lanes.cancel(job)
        self._running.remove(job)
        for call in job.calls:
            self.memo.cancel(call.key, self._lanes.now_ns())
            self._written.pop(call.key, None)

    def _free(self, role: Role) -> bool:
        return self._lanes.room(role) > 0 and not self.breakers[role].is_open(self._lanes.now_ns())

    def _batch(self, role: Role, *queues: list[Call]) -> list[Call]:
        """Takes from the queues, in order, as many calls as the model takes at once."""
        size, batch = self._max_batch(role), list[Call]()
        for queue in queues:
            while queue and len(batch) < size and not (batch and self._alone & {batch[0].key, queue[0].key}):
                batch.append(queue.pop(0))
        return batch

    def _start(self, role: Role, calls: list[Call], needed: set[str]) -> None:
        for call in calls:
            self.memo.begin(call, self._lanes.now_ns(), "needed" if call.key in needed else "early")
        self._launch(Job(role, tuple(calls)))

    def _launch(self, job: Job) -> None:
        self._running.append(job)
        self._lanes.start(job)

    def _await_news(self, active: list[Episode], needs: dict[Episode, Call]) -> None:
        """Until a model has said something, a tick has come, or a model may be tried again.

        A live ring is read meanwhile: looking for the newest tick is what keeps its frames from being overwritten.
        """
        before = [self._newest[episode] for episode in active]
        while not self._stopping:
            until = self._until(active, needs)
            signals = self._lanes.wait(until)
            self._absorb(signals)
            resting = any(self.breakers[need.role].tripped for need in needs.values())
            if signals or until is None or resting or before != [episode.ticks.newest() for episode in active]:
                return
            if any(episode not in needs and episode.ticks.over for episode in active):
                return

    def _until(self, active: list[Episode], needs: dict[Episode, Call]) -> int | None:
        """When to look again if no model answers before."""
        times = [episode.ticks.due_ns() for episode in active]
        now = self._lanes.now_ns()
        times += [
            self.breakers[need.role].closed_again_ns
            for need in needs.values()
            if self.breakers[need.role].is_open(now) and not self.memo.pending(need.key)
        ]
        return min((at for at in times if at is not None), default=None)

    def _absorb(self, signals: list[Signal]) -> None:
        for signal in signals:
            if not isinstance(signal, Finished):
                self._written.setdefault(signal.call.key, {})[signal.name] = signal.value
                continue
            self._running.remove(signal.job)
            failed = any(isinstance(reply, Failure) for reply in signal.replies)
            if not failed or any(self.memo.needed(call.key) for call in signal.job.calls):
                self.breakers[signal.job.role].record(failed, self._lanes.now_ns())
            if failed and len(signal.job.calls) > 1:  # one of them may have failed all: each gets a fair try
                for call in signal.job.calls:
                    self._alone.add(call.key)
                    self.memo.cancel(call.key, self._lanes.now_ns())
                continue
            for call, reply in zip(signal.job.calls, signal.replies, strict=True):
                self.memo.finish(call.key, reply, self._lanes.now_ns())
                self._alone.discard(call.key)
                self._written.pop(call.key, None)
                shown = self._fresh.pop(call.key, None)
                if shown is not None and self._on_fresh is not None and isinstance(reply, float):
                    self._on_fresh(*shown, reply)

    @staticmethod
    def _keys(needs: dict[Episode, Call]) -> set[str]:
        return {need.key for need in needs.values()}
