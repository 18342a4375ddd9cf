"""What came of the calls of a model, for whoever watches it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Counts:
    """Every question ends as one of replies, failed or cancelled; the rest says more of them."""

    asked: int = 0
    replies: int = 0  # texts that were handed back, fitting or not
    failed: int = 0  # no text at all: the transport, the server, the deadline
    cancelled: int = 0
    invalid: int = 0  # of the replies, those that do not fit their schema: a server that ignores it shows here
    cut_off: int = 0  # of the replies, those that ended at max_tokens
    runaway: int = 0  # of the replies, those that were stopped here: endless whitespace, a string beyond its bound
    unwrapped: int = 0  # of the replies, those that had thinking or a code fence around them
    retried: int = 0  # requests sent again
    out_of_time: int = 0  # of the failed, those past their deadline


class Tally:
    """Counts, from any thread."""

    def __init__(self) -> None:
        self._counts, self._lock = Counts(), threading.Lock()

    def add(self, *names: str) -> None:
        with self._lock:
            self._counts = replace(self._counts, **{name: getattr(self._counts, name) + 1 for name in names})

    @property
    def counts(self) -> Counts:
        return self._counts
