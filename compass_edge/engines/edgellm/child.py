"""A server as a child process: started in a session of its own, heard, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence

from compass_edge.errors import EnvironmentFault

_LINES = 200
_LONGEST = 2000
# A parent that is killed cannot end its child, which would go on to hold the GPU's memory: the kernel ends it instead. It is
# said by the child itself, since nothing of Python may run between fork and exec in a process that has threads.
_ORPHAN = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit(1)\n"
    "try: os.execvp(sys.argv[2], sys.argv[2:])\n"
    "except OSError as error: sys.exit(f'{sys.argv[2]} could not be started: {error.strerror}')\n"
)


class Child:
    def __init__(self, words: Sequence[str]) -> None:
        self._lines: deque[str] = deque(maxlen=_LINES)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _ORPHAN, str(os.getpid()), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentFault(f"`{words[0]}` could not be started: {error.strerror or error}.") from error
        self._listener = threading.Thread(target=self._listen, name="compass-edgellm-log", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def lines(self) -> list[str]:
        return list(self._lines)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._listener.join(1.0)
        return True

    def how_it_ended(self) -> str:
        code = self._process.poll()
        if code is None:
            return "it is running"
        if code >= 0:
            return f"it ended with exit code {code}"
        killed = ", as the system does when memory runs out" if -code == signal.SIGKILL else ""
        return f"it was ended by signal {-code}{killed}"

    def ask_to_end(self) -> None:
        """At once, from any thread: whoever waits for its answer is let go."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGTERM)

    def end(self, grace_s: float) -> None:
        """Politely, then not; its whole session, since a leader that has gone may leave workers behind."""
        self.ask_to_end()
        if not self.wait(grace_s):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._listener.join(1.0)

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            while line := stream.readline(_LONGEST):
                self._lines.append(line.decode("utf-8", "replace").rstrip())
