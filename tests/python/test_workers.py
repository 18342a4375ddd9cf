"""Workers: they do the work, and nobody has to look after them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compass_edge.workers import workers

_GIVEN: list[str] = []


def prepared(*values: str) -> None:
    _GIVEN.extend(values)


def what_was_given(_: int) -> tuple[str, ...]:
    return tuple(_GIVEN)


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def gone(process: int, within: float = 20.0) -> bool:
    end = time.monotonic() + within
    while is_alive(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_alive(process)


def test_each_is_prepared() -> None:
    with workers(2, 3, prepared, "a", "b") as pool:
        assert list(pool.map(what_was_given, range(3))) == [("a", "b")] * 3


def test_no_more_than_there_is_work() -> None:
    with workers(8, 1) as pool:
        assert pool._max_workers == 1
    with workers(None, 0) as pool:
        assert pool._max_workers == 1


def test_an_error_ends_what_is_under_way() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), workers(1, 2) as pool:
        process = pool.submit(sleep, 0).result()
        pool.submit(sleep, 600)
        raise KeyboardInterrupt
    assert gone(process)
    assert time.monotonic() - begun < 300  # the sleeper was not waited for


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_workers_of_a_killed_process_end() -> None:
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from test_workers import sleep; from compass_edge.workers import workers\n"
        "if __name__ == '__main__':\n"
        "    with workers(1, 1) as pool:\n"
        "        print(pool.submit(sleep, 0).result(), flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    assert parent.stdout is not None
    with parent.stdout:
        worker = int(parent.stdout.readline())
    assert is_alive(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone(worker)
