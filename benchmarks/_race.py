"""A race: contenders take turns, round after round, so that a noisy machine disturbs all alike. Results are ratios."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# A contender returns the CPU-seconds it spent on one turn.
Contender = Callable[[], float]


def race(label: str, contenders: dict[str, Contender], rounds: int) -> dict[str, float]:
    """Median CPU-seconds a turn of each contender, over interleaved rounds after one for warming up."""
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            if sys.stderr.isatty():
                sys.stderr.write(f"\r\x1b[K{label}: round {turn}/{rounds}, {name}")
            seconds = run()
            if turn > 0:
                spent[name].append(seconds)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return {name: statistics.median(seconds) for name, seconds in spent.items()}


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }


def versions(*packages: str) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
