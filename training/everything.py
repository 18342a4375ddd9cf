"""From nothing to the files that the package carries, one part after the other. What is finished is left alone.

    python -m training.everything WORK                 # several CPU-hours
    python -m training.everything WORK --package DIR   # the exports go there instead of compass_edge/tiny
    python -m training.everything WORK --films 1 --steps 60 --minutes 0.6 --checkpoint OUT --package DIR    # to see that it runs

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
STILLS, OPENINGS, STRANGERS = 4, 20, 10  # of each task, with as many films
TOWER_STEPS = 3500
MINUTES = 180  # of the course of everything that O and V do


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="where films and checkpoints are kept (about 10 GB)")
    parser.add_argument("--package", type=Path, default=Path("compass_edge/tiny"))
    parser.add_argument("--checkpoint", type=Path, default=Path("training/compass-tiny"))
    parser.add_argument("--crew", type=int, default=2, help="processes, one a core")
    parser.add_argument(
        "--minutes",
        type=float,
        default=MINUTES,
        help="of the part in which O and V are learned; then V has half as many more, and P too",
    )
    parser.add_argument("--steps", type=int, default=TOWER_STEPS, help="of the tower alone")
    parser.add_argument(
        "--half", action="store_true", help="multiply in bfloat16 there: faster where a CPU has it (README)"
    )
    parser.add_argument(
        "--films", type=int, default=FILMS_A_TASK, help="training films of each task, and stills in proportion"
    )
    given = parser.parse_args()
    work, crew = given.work, ["--crew", str(given.crew)]
    films, stills, tokenizer = (work / name for name in ("films", "stills", "tokenizer"))
    names = ("tower.pt", "balanced.pt", "roles.pt", "verifier.pt", "progress.pt")
    tower, even, roles, verifier, progress = (work / name for name in names)
    course = [*["--half"] * given.half, "--crew", given.crew]
    after = ["--still", "--minutes", given.minutes / 2, "--rate", 7e-4, "--hold", 0.1, *course]
    few = [
        value
        for name, count in (("--episodes", STILLS), ("--openings", OPENINGS), ("--strangers", STRANGERS))
        for value in (name, max(count * given.films // FILMS_A_TASK, 1))
    ]
    logs = [part.with_suffix(".jsonl") for part in (roles, verifier, progress)]
    for made, part, arguments in (
        (None, "footage", [films, "--films", given.films, *crew]),
        (tokenizer / "tokenizer.json", "vocabulary", [films, tokenizer]),
        (None, "stills", [stills, *few, *crew]),
        (tower, "tower", [films, tower, "--stills", stills, "--steps", given.steps, *course]),
        (even, "balance", [films, tower, even]),
        (None, "roles", [films, stills, tokenizer, even, roles, "--minutes", given.minutes, *course]),
        (None, "roles", [films, stills, tokenizer, roles, verifier, "--course", "verifier", *after]),
        # P begins as V, which has learned to find what a sentence names.
        (None, "roles", [films, stills, tokenizer, verifier, progress, "--course", "clips", *after]),
        (None, "publish", [verifier, progress, tokenizer, given.checkpoint, "--package", given.package]),
        (None, "plot", [*logs, work / "learning.png"]),
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
