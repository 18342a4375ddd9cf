"""Worker processes: for work that keeps every core busy, and gone as soon as nobody waits for it any more."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any


@contextmanager
def workers(
    wanted: int | None, most: int, prepare: Callable[..., None] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """`wanted` processes, by default one a core, and never more than there is work: `most`.

    `prepare(*given)` runs first in each. After Ctrl-C or an error what is under way is ended, not waited for; and if this
    process is killed, they end by themselves.
    """
    # A fork would copy locks that the threads of a model or of the graphics hold.
    executor = ProcessPoolExecutor(
        max(min(wanted or os.cpu_count() or 1, most), 1), multiprocessing.get_context("spawn"), _begin, (prepare, given)
    )
    try:
        yield executor
    except BaseException:
        processes = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    executor.shutdown()


def _begin(prepare: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, who ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare(*given)


def _end_with_parent() -> None:
    """A pool's pipes stay open in its own workers: without this they would wait for ever for a parent that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
