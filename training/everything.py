"""From nothing to the files that the package carries, one part after the other. What is finished is left alone.

    python -m training.everything WORK                 # several CPU-hours
    python -m training.everything WORK --package DIR   # the exports go there instead of compass_edge/tiny

Each part can be run alone, too: `python -m training.PART --help`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

FILMS_A_TASK = 14  # training seeds of each task
STEPS = {"tower": 3500, "roles": 1600, "live": 5000}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="where films, features and checkpoints are kept (about 12 GB)")
    parser.add_argument("--package", type=Path, default=Path("compass_edge/tiny"))
    parser.add_argument("--checkpoint", type=Path, default=Path("training/compass-tiny"))
    parser.add_argument("--crew", type=int, default=2, help="processes, one a core")
    parser.add_argument("--films", type=int, default=FILMS_A_TASK, help="training films of each task")
    given = parser.parse_args()
    work, crew = given.work, ["--crew", str(given.crew)]
    films, stills, features, tokenizer = (work / name for name in ("films", "stills", "features", "tokenizer"))
    tower, roles, live = (work / name for name in ("tower.pt", "roles.pt", "live.pt"))
    balanced, even = work / "balanced.pt", work / "balanced"
    for made, part, arguments in (
        (None, "footage", [films, "--films", given.films, *crew]),
        (tokenizer / "tokenizer.json", "vocabulary", [films, tokenizer]),
        (None, "stills", [stills, *crew]),
        (tower, "tower", [films, tower, "--stills", stills, "--steps", STEPS["tower"], *crew]),
        (None, "features", [films, stills, tower, features, *crew]),
        (balanced, "balance", [features, tower, balanced, even]),
        (None, "roles", [films, stills, even, tokenizer, balanced, roles, "--steps", STEPS["roles"], *crew]),
        (
            None,
            "roles",
            [
                films,
                stills,
                even,
                tokenizer,
                balanced,
                live,
                "--live",
                "--start",
                roles,
                "--steps",
                STEPS["live"],
                *crew,
            ],
        ),
        (None, "publish", [live, tokenizer, given.checkpoint, "--package", given.package]),
        (None, "plot", [live.with_suffix(".jsonl"), work / "learning.png"]),
    ):
        if made is None or not made.exists():
            _run(part, arguments)
    return 0


def _run(part: str, arguments: Sequence[object]) -> None:
    began, before = time.monotonic(), _seconds()
    print(f"{part} ...", flush=True)
    code = subprocess.run([sys.executable, "-m", f"training.{part}", *map(str, arguments)], check=False).returncode
    if code:
        sys.exit(code)
    print(
        f"{part} took {(time.monotonic() - began) / 60:.1f} minutes, {(_seconds() - before) / 60:.1f} CPU-minutes",
        flush=True,
    )


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
