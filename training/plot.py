"""Draws the learning curves of a run.

python -m training.plot ROLES.jsonl OUT.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

_PANELS = (
    ("Verifier", ("verify right", "verify false accept", "verify false reject")),
    ("Orienter", ("first plan", "first objects", "next subtask")),
    (
        "progress: mean error, and score under a wrong sentence",
        ("clip right", "clip episode", "clip same thing", "clip other thing"),
    ),
)


def main() -> int:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    examined = [line for line in lines if "verify right" in line]
    figure, axes = plt.subplots(1, len(_PANELS), figsize=(13, 3.6), constrained_layout=True)
    for axis, (title, names) in zip(axes, _PANELS, strict=True):
        for name in names:
            known = [(line["step"], line[name][0]) for line in examined if name in line]
            axis.plot(*zip(*known, strict=True), marker="o", markersize=3, label=name) if known else None
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("step")
        axis.set_ylim(0, 1 if title != _PANELS[2][0] else 0.6)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, frameon=False)
    figure.savefig(sys.argv[2], dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
