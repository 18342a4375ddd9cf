"""`compass-edge demo`: the loop on the episodes that come with the package, live, with the model that comes with it."""

from __future__ import annotations

import argparse
from typing import Any

from compass_edge.cli.whole import at_least

FOLDER = "compass-edge-demo"
_EXECUTORS = ("sequential", "overlapped", "pool")


def run(arguments: argparse.Namespace) -> int:
    from compass_edge.cli.demo_run import run_demo  # numpy, onnxruntime: not needed to print a help text

    return run_demo(arguments)


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="the loop on three episodes, with the model that comes with the package",
        description="Runs the loop on the three episodes that come with the package, with the model that comes with it, and "
        "shows plan, verdicts and progress as they come. Says how far progress is from the truth, with context and without, "
        f"and writes a page about each episode into ./{FOLDER}.",
        epilog="The frame path alone: compass-edge frames --demo",
    )
    parser.add_argument("--preset", default="tiny", metavar="NAME", help="which models (tiny)")
    parser.add_argument("--threads", type=at_least(1), metavar="N", help="of each model (one a core)")
    parser.add_argument("--executor", choices=_EXECUTORS, default="sequential", help="who runs it (sequential)")
    parser.add_argument("--out", default=FOLDER, metavar="DIR", help=f"where the pages go ({FOLDER})")
    parser.add_argument("--json", action="store_true", help="JSON lines of each run, and the errors at the end")
    parser.set_defaults(run=run)
