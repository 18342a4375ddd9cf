"""The memo: replies kept under the hash of their call's full input.

A speculative call is an ordinary call made early. If the Navigator then asks for exactly that, its reply is here or on the
way; otherwise it was wasted work, and never wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from compass_edge.loop.call import Call, Failure, Reply

# Why a call was made: the Navigator asked; it may ask soon; to show how things stand at the newest frame.
Why = Literal["needed", "early", "shown"]


@dataclass(slots=True)
class Entry:
    """Without the call itself: its clip would hold on to frames that the loop has let go of."""

    why: Why
    started_ns: int
    done_ns: int | None = None
    reply: Reply | None = None
    used: bool = False


@dataclass(slots=True)
class Speculation:
    """What asking early was worth."""

    started: int = 0  # calls made early
    hits: int = 0  # of them, asked for
    wasted: int = 0  # of them, not asked for
    cancelled: int = 0  # of the wasted, given up half way
    saved_ns: int = 0  # waiting that was spared
    wasted_ns: int = 0  # a model's time on replies that nobody asked for
    shown: int = 0  # scores for display; counted above only if they were asked for after all

    @property
    def hit_rate(self) -> float | None:
        return self.hits / self.started if self.started else None


class Memo:
    """Not for threads: it belongs to the executor's."""

    def __init__(self, max_entries: int = 4096) -> None:
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._max_entries = max_entries
        self.stats = Speculation()

    def begin(self, call: Call, now_ns: int, why: Why) -> None:
        """The call is on its way."""
        self._entries[call.key] = Entry(why, now_ns)
        self.stats.started += why == "early"
        self.stats.shown += why == "shown"
        done = (key for key, entry in self._entries.items() if entry.reply is not None)
        while len(self._entries) > self._max_entries and (oldest := next(done, None)) is not None:
            self._leave(self._entries.pop(oldest))
            done = (key for key, entry in self._entries.items() if entry.reply is not None)

    def finish(self, key: str, reply: Reply, now_ns: int) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            entry.reply, entry.done_ns = reply, now_ns

    def cancel(self, key: str, now_ns: int) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None and entry.why == "early" and not entry.used:
            self.stats.cancelled += 1
            self.stats.wasted += 1
            self.stats.wasted_ns += now_ns - entry.started_ns

    def pending(self, key: str) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.reply is None

    def known(self, key: str) -> bool:
        """Here or on its way. A failure that nobody asked for yet is known too."""
        return key in self._entries

    def needed(self, key: str) -> bool:
        """The Navigator waits for it."""
        entry = self._entries.get(key)
        return entry is not None and (entry.why == "needed" or entry.used)

    def peek(self, key: str) -> Reply | None:
        """For looking ahead: leaves no trace."""
        entry = self._entries.get(key)
        return None if entry is None else entry.reply

    def ask(self, key: str, now_ns: int) -> Reply | None:
        """For the Navigator: the reply, if it is here. A failure is handed out once, so that the next attempt is a real one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.why != "needed" and not entry.used:
            entry.used = True
            self.stats.started += entry.why == "shown"
            self.stats.hits += 1
            self.stats.saved_ns += min(now_ns, entry.done_ns or now_ns) - entry.started_ns
        if isinstance(entry.reply, Failure):
            del self._entries[key]
        return entry.reply

    def close(self) -> Speculation:
        """The run is over: what was not used is waste."""
        for entry in self._entries.values():
            self._leave(entry)
        self._entries.clear()
        return self.stats

    def _leave(self, entry: Entry) -> None:
        if entry.why == "early" and not entry.used:
            self.stats.wasted += 1
            self.stats.wasted_ns += (entry.done_ns or entry.started_ns) - entry.started_ns
