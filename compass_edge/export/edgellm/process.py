"""A program that runs for minutes: what it says goes into a file, and the last of it into the sentence about its failure."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compass_edge.errors import CompassError, EnvironmentFault

_LOOK_S = 0.2
_GRACE_S = 10.0
_TAIL = 64 << 10
_SHOWN = 400
_ERROR = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt)\b.*|ERROR: .*)$")

Cancelled = Callable[[], bool]


def run_logged(
    words: Sequence[str],
    log: Path,
    what: str,
    *,
    environment: Mapping[str, str] | None = None,
    cancelled: Cancelled = lambda: False,
) -> None:
    """Raises KeyboardInterrupt once `cancelled`; the program and all that it has started are gone by then."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        try:
            child = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentFault(
                f"{what} needs `{words[0]}`, which could not be started: {error.strerror or error}."
            ) from error
        try:
            code = _waited(child, cancelled)
        finally:
            end_group(child)
    if code != 0:
        ended = f"was ended by {_signal_name(-code)}" if code < 0 else f"failed with exit code {code}"
        raise CompassError(f"{what} {ended}. {last_words(log)} All that it said is in '{log}'.")


def end_group(child: subprocess.Popen[bytes], grace_s: float = _GRACE_S) -> None:
    """Politely, then not. It does nothing to one that has ended."""
    if child.poll() is not None:
        return
    for number, patience in ((signal.SIGTERM, grace_s), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        try:
            child.wait(patience)
            return
        except subprocess.TimeoutExpired:
            continue


def last_words(log: Path) -> str:
    """The last line that names an error, else the last line."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - _TAIL, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return "It said nothing."
    return spoken(text.splitlines())


def spoken(lines: Sequence[str]) -> str:
    said = [line.strip() for line in lines if line.strip()]
    if not said:
        return "It said nothing."
    found = next((line for line in reversed(said) if _ERROR.match(line)), said[-1])
    return f"It said: {found[:_SHOWN]}" + ("" if found.endswith((".", "!", "?")) else ".")


def _waited(child: subprocess.Popen[bytes], cancelled: Cancelled) -> int:
    while True:
        if cancelled():
            raise KeyboardInterrupt
        try:
            return child.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            continue


def _signal_name(number: int) -> str:
    if number == signal.SIGKILL:
        return "SIGKILL, as the system does when memory runs out"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
