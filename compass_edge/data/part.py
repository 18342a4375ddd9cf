"""A file in the making: under a name of its own for each process, until it is whole."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# A film is written in minutes: a part that is older was left by a process that was ended meanwhile.
ABANDONED_S = 6 * 3600


def part_of(path: Path) -> Path:
    """Two processes that make the same file do not meet: the last one to finish gives it its name."""
    for left in path.parent.glob(f".{path.name}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                left.unlink()
    return path.with_name(f".{path.name}.{os.getpid()}.part")
