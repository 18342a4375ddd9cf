"""`compass-edge run`: an episode through the loop. Scripted for now: models for live use come with the engines."""

from __future__ import annotations

import argparse
import re
from typing import Any

from compass_edge.cli.replay import speed
from compass_edge.errors import UsageError
from compass_edge.scripted.scenario import BOARDS, built_in, load

_EXAMPLES = """\
Examples:
  compass-edge run --list
  compass-edge run --scripted state-recall
  compass-edge run --scripted stall --speed max --json
  compass-edge run --scripted my.json --executor sequential --journal run.journal

Models, frames and latencies are scripted: this shows the loop's logic and its schedule, never how good a model is.
The latencies of --board are inferred from token rates that others published, not measured by us:
  thor   O 7.5 s, P 0.14 s, V 1.8 s a call         orin   O 30 s, P 1.05 s, V 6.8 s a call
"""


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for name in built_in():
            print(f"{name:<16}{re.split('(?<=[.?]) ', load(name).about)[0]}")
        return 0
    if arguments.scripted is None:
        raise UsageError(
            "Models for live use come with the engines, and there are none yet. Run a scripted episode: compass-edge run "
            "--scripted NAME (--list shows their names)."
        )
    if arguments.record and arguments.play:
        raise UsageError("--record keeps the models' replies and --play does without the models. Choose one.")
    from compass_edge.cli.scripted_run import run_scripted  # jsonschema: not needed to be examined by doctor

    return run_scripted(arguments)


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="an episode through the loop, scripted",
        description="Runs an episode through the loop: O plans, P scores, V verifies, N decides. Shows it as it happens.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scripted", metavar="SCENARIO", help="a built-in scenario, or a .json of your own")
    parser.add_argument("--list", action="store_true", help="the built-in scenarios, one line each")
    parser.add_argument(
        "--speed", type=speed, default=8.0, metavar="X", help="virtual seconds in a real one, or 'max' (8)"
    )
    parser.add_argument(
        "--executor",
        choices=("overlapped", "sequential", "pool"),
        default="overlapped",
        help="who runs it; the events are the same (overlapped)",
    )
    parser.add_argument("--board", choices=tuple(BOARDS), help="whose latencies (the scenario's, or thor)")
    parser.add_argument(
        "--tau",
        choices=("everywhere", "orienter", "nowhere"),
        default="everywhere",
        help="who is told the expected transition (everywhere)",
    )
    parser.add_argument("--settings", metavar="FILE", help="the loop's settings as JSON; calibrate --out writes some")
    parser.add_argument("--journal", metavar="FILE", help="record every event; a kill costs none of them")
    parser.add_argument("--resume", action="store_true", help="go on with the journal where it ends")
    parser.add_argument("--record", metavar="FILE", help="keep the models' replies on a cassette")
    parser.add_argument("--play", metavar="FILE", help="take the models' replies from a cassette")
    parser.add_argument("--json", action="store_true", help="one JSON object an event, a progress, and a summary")
    parser.set_defaults(run=run)
