"""`compass-edge eval`: methods on episodes, every table of the paper, and a report."""

from __future__ import annotations

import argparse
from typing import Any

from compass_edge.cli.whole import at_least

_EXAMPLES = """\
Examples:
  compass-edge eval my_episodes                                 a data set, in any format that data inspect reads
  compass-edge eval --tasks S1,Q2,R1 --seeds 0-1 --report out   tasks of the simulator, rendered where they are missing
  compass-edge eval --tasks recurrence --negatives --ablation --report out
  compass-edge eval --tasks all --models oracle:beta=0.1,gamma=0.2 --json > numbers.json
  compass-edge eval my_episodes --settings settings.json        thresholds that calibrate --out wrote
  compass-edge eval --suite sim --json                          compass-tiny on the whole benchmark: loop, roles and speed
  compass-edge eval --suite sim --limit 6                       a quick look at it
  compass-edge eval --suite sim --seeds 1000-1001               the same questions on seeds that a model may be tuned on

Methods: the loop (compass); its progress model alone, without context, with the true step and position, and with the true
step counted on from where the model itself ended the one before. Lower MAE (0 to 100) and higher rho are better.

Models: tiny is compass-tiny, which comes with the package, with the settings it was tuned for. oracle knows the annotation. It
tests the loop and the evaluation, never how good a trained model is. Damage it with
  beta=P   false completions accepted      gamma=P  true ones rejected        early=P  steps proposed half way through
  bias=X   added to progress in a step     plan_error=P  plans with a step too many or too few       seed=N  which ones

What is finished is kept in the cache: stopped with Ctrl-C, the same command goes on where it was, and a command that shares
methods and episodes with an earlier one shares their results.
"""


def run(arguments: argparse.Namespace) -> int:
    from compass_edge.cli.eval_run import run_eval  # the readers and jsonschema: doctor must do without

    return run_eval(arguments)


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "eval",
        help="how well progress is reported, on annotated episodes; with a report",
        description="Runs the loop and its progress model alone on annotated episodes, and measures how far they are from the truth.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="data sets, or single episodes")
    parser.add_argument(
        "--tasks", metavar="LIST", help="tasks of the simulator beside them: S1,Q2, state, sequence, recurrence or all"
    )
    parser.add_argument(
        "--seeds", metavar="A-B", help="of the tasks or the suite, such as 0-4 or 0-2,7 (0-4, the test seeds)"
    )
    parser.add_argument(
        "--negatives", action="store_true", help="the simulator's films that do not match their instruction"
    )
    parser.add_argument(
        "--ablation", action="store_true", help="the loop without the expected transition too: twice more"
    )
    parser.add_argument(
        "--suite",
        choices=("sim",),
        help="the simulator's 120 test episodes and 15 negatives, each role alone, and the speed",
    )
    parser.add_argument("--live", action="store_true", help="with --suite: films in real time too, as from a camera")
    parser.add_argument(
        "--models", metavar="NAME", help="with what is asked of them, as below (oracle; with --suite tiny)"
    )
    parser.add_argument("--every", type=at_least(1), metavar="N", help="frames from tick to tick (a third of a second)")
    parser.add_argument(
        "--executor",
        choices=("sequential", "overlapped", "pool"),
        default="sequential",
        help="who runs the loop; the curves are the same (sequential)",
    )
    parser.add_argument("--settings", metavar="FILE", help="the loop's settings as JSON; calibrate --out writes some")
    parser.add_argument(
        "--cache", metavar="DIR", help="where results and rendered films are kept (~/.cache/compass-edge)"
    )
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="processes (one a core)")
    parser.add_argument(
        "--limit", type=at_least(1), metavar="N", help="so many episodes at most, spread over the tasks"
    )
    parser.add_argument("--report", metavar="DIR", help="write index.html and its pictures there")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(run=run)
