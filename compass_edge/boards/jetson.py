"""What only a Jetson has: its release file, power mode and clocks."""

from __future__ import annotations

import re
from pathlib import Path

from compass_edge.boards.command import Runner

_RELEASE = re.compile(r"#\s*R(\d+)\s*\(release\)\s*,\s*REVISION:\s*(\d+)(?:\.(\d+))?")
_MODE = re.compile(r"NV Power Mode\s*:\s*(\S+)")
_GPU_CLOCK = re.compile(r"^GPU\b.*?MinFreq=(\d+)\s+MaxFreq=(\d+)\s+CurrentFreq=(\d+)", re.MULTILINE)
_GPU_DEVICES = ("*.gpu", "*.ga10b", "gpu-*", "gb10b*")  # of /sys/class/devfreq, as the releases name it


def parse_release(text: str) -> str:
    """R39.2.1 of '# R39 (release), REVISION: 2.1, GCID: ...'; empty if it is something else."""
    found = _RELEASE.search(text)
    if found is None:
        return ""
    major, minor, patch = found.groups()
    return f"R{major}.{minor}" + (f".{patch}" if patch else "")


def power_mode(run: Runner) -> tuple[str, str]:
    """The mode's name, and why there is none."""
    answer = run(("nvpmodel", "-q"))
    if answer.trouble:
        return "", answer.trouble
    found = _MODE.search(answer.output)
    if found is None:
        return "", f"`nvpmodel -q` was to name the power mode, and said: {answer.output.strip()[:80]!r}."
    return found.group(1), ""


def clocks(root: Path, run: Runner) -> tuple[str, str]:
    """The GPU's clock, and why it is not known. `jetson_clocks` wants root; /sys is the second try."""
    answer = run(("jetson_clocks", "--show"))
    found = _GPU_CLOCK.search(answer.output)
    if found is not None:
        least, most, now = (int(value) for value in found.groups())
        return _told(least, most, now), ""
    for pattern in _GPU_DEVICES:
        for device in sorted((root / "sys/class/devfreq").glob(pattern)):
            try:
                values = [int((device / name).read_text()) for name in ("min_freq", "max_freq", "cur_freq")]
            except (OSError, ValueError):
                continue
            return _told(*values), ""
    why = answer.trouble or "`jetson_clocks --show` did not list the GPU."
    return "", f"{why} /sys/class/devfreq has no readable GPU either; `sudo jetson_clocks --show` may."


def _told(least: int, most: int, now: int) -> str:
    # Kernels write hertz, older tools kilohertz.
    unit = 1_000_000 if most > 10_000_000 else 1_000
    pinned = "pinned at the highest" if least == most else f"free from {least // unit} to {most // unit} MHz"
    return f"GPU {now // unit} MHz, {pinned}"
