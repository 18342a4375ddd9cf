"""How many requests a server gets at once from this process, however many models here are served by it."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Iterator

from compass_edge.engines.openai.patience import Patience


class Slots:
    """Taken in the order of asking. Where two models of one server allow different numbers, the smaller one holds."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._taken = 0

    def at_most(self, limit: int) -> None:
        with self._changed:
            self.limit = min(self.limit, limit)

    @contextlib.contextmanager
    def one(self, patience: Patience) -> Iterator[None]:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or self._taken >= self.limit:
                    self._changed.wait(patience.look())
                patience.look()
                self._taken += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify_all()


_all: weakref.WeakValueDictionary[tuple[str, int], Slots] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def slots_of(host: str, port: int, limit: int) -> Slots:
    """The slots of a server. They are forgotten with the last model that holds them."""
    with _lock:
        slots = _all.get((host, port))
        if slots is None:
            slots = _all[host, port] = Slots(limit)
        slots.at_most(limit)
        return slots
