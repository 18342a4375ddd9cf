"""Draws the learning curves of a run: what was logged of training, and the examinations where there were some.

python -m training.plot ROLES.jsonl VERIFIER.jsonl PROGRESS.jsonl OUT.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_Line = dict[str, Any]
_TRAINED = (
    ("tokens of replies that are wrong", ("verify", "survey", "first", "first text", "recall text", "next")),
    (
        "loss of guided looks and of what they say",
        ("look behind", "look heading", "look repeated", "look said", "look read", "look told"),
    ),
    ("error of progress, right and wrong sentences", ("clip",)),
    ("loss of the tower's labels", ("dense",)),
)
_EXAMINED = (
    "examined on tuning seeds",
    ("verify right", "verify false accept", "first plan", "next subtask", "clip right", "clip same thing"),
)


def main() -> int:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    *logs, out = sys.argv[1:]
    lines = _lines([Path(log) for log in logs])
    shown = [panel for panel in _TRAINED if any(_trained(lines, name) for name in panel[1])]
    panels = [*shown, *[_EXAMINED] * any("verify right" in line for line in lines)]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.6 * len(panels), 3.4), constrained_layout=True, squeeze=False
    )
    for axis, (title, names) in zip(axes[0], panels, strict=True):
        examined = title == _EXAMINED[0]
        for name in names:
            known = _examined(lines, name) if examined else _trained(lines, name)
            if known:
                axis.plot(
                    *zip(*known, strict=True), linewidth=1.2, label=name, marker="o" if examined else "", markersize=4
                )
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("minutes", fontsize=8)
        axis.tick_params(labelsize=7)
        if examined:
            axis.set_ylim(0, 1)
        else:
            axis.set_yscale("log")
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=7, frameon=False)
    figure.savefig(out, dpi=110)
    return 0


def _lines(logs: list[Path]) -> list[_Line]:
    """Of courses that came one after the other: their minutes are counted on."""
    found: list[_Line] = []
    for log in logs:
        before = found[-1]["minutes"] if found else 0.0
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found += [{**line, "minutes": before + line["minutes"]} for line in lines]
    return found


def _trained(lines: list[_Line], name: str) -> list[tuple[float, float]]:
    values = [(line["minutes"], line["train"][name]) for line in lines if name in line.get("train", {})]
    return (
        values
        if name in ("clip", "dense") or name.startswith("look ")
        else [(at, max(1 - right, 1e-4)) for at, right in values]
    )


def _examined(lines: list[_Line], name: str) -> list[tuple[float, float]]:
    return [(line["minutes"], line[name][0]) for line in lines if name in line]


if __name__ == "__main__":
    sys.exit(main())
