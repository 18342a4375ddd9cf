"""Commands of the system, asked with patience that ends."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """`trouble` says why there is no output; empty if there is. `there` is False for a command that is not installed."""

    output: str = ""
    trouble: str = ""
    there: bool = True


Runner: TypeAlias = Callable[[Sequence[str]], Answer]


def run_command(command: Sequence[str]) -> Answer:
    """Never raises for what a command does."""
    path = shutil.which(command[0])
    if path is None:
        return Answer(trouble=f"`{command[0]}` is not installed.", there=False)
    told = " ".join(command)
    try:
        done = subprocess.run(
            [path, *command[1:]], capture_output=True, timeout=_DEADLINE_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Answer(trouble=f"`{told}` did not answer within {_DEADLINE_S:.0f} s.")
    except OSError as error:
        return Answer(trouble=f"`{told}` could not be started: {error.strerror or error}.")
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        said = (done.stderr.decode("utf-8", "replace").strip() or output.strip()).partition("\n")[0]
        return Answer(trouble=f"`{told}` failed with exit code {done.returncode}: {said[:200] or 'it said nothing'}")
    return Answer(output)
