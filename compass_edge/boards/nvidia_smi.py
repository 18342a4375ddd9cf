"""What nvidia-smi says about the cards."""

from __future__ import annotations

from compass_edge.boards.command import Runner
from compass_edge.boards.machine import Gpu

_QUERY = "name,compute_cap,driver_version,memory.total,memory.free"
COMMAND = ("nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
_FIELDS = 5
_MIB = 1 << 20


def cards(run: Runner) -> tuple[list[Gpu], str]:
    """The cards, and why there are none; nothing is said where the tool is not installed."""
    answer = run(COMMAND)
    if not answer.there:
        return [], ""
    if answer.trouble:
        return [], answer.trouble
    found, odd = list[Gpu](), ""
    for line in answer.output.splitlines():
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != _FIELDS or not fields[0]:
            odd = odd or f"`nvidia-smi` was to list a card's {_QUERY}, and said: {line[:80]!r}."
            continue
        name, capability, driver, total, free = fields
        driver = driver if driver[:1].isdigit() else ""
        found.append(Gpu(name, _sm(capability), _mebibytes(total), _mebibytes(free), driver))
    return found, odd


def _sm(capability: str) -> int | None:
    major, _, minor = capability.partition(".")
    return int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() else None


def _mebibytes(text: str) -> int | None:
    """[N/A] where the memory is the CPU's."""
    return int(text) * _MIB if text.isdigit() else None
