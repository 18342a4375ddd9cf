"""`compass-edge run`: a video, a stream or a camera through the loop; or a scripted episode, without models."""

from __future__ import annotations

import argparse
import re
from typing import Any

from compass_edge.cli.replay import speed
from compass_edge.cli.whole import at_least
from compass_edge.errors import UsageError
from compass_edge.frames.source import DECODERS
from compass_edge.scripted.scenario import BOARDS, built_in, load

_SPEED = 8.0
_SCRIPTED = ("speed", "board")  # what only one kind of run has
_VIDEO = ("decoder", "task", "episode", "preset", "threads", "realtime", "report")
_EXAMPLES = """\
Examples:
  compass-edge run episode.mp4 --task "Press the yellow button 5 times." --report page
  compass-edge run bundled --episode R1/0 --realtime
  compass-edge run rtsp://camera/stream --task "Put the cup on the plate." --journal run.journal
  compass-edge run --list
  compass-edge run --scripted state-recall
  compass-edge run --scripted my.json --executor sequential --journal run.journal

A video that is annotated (NAME.json beside NAME.mp4) brings its task and is measured against its annotation. Without
--realtime a video is read as fast as the models are, and no event depends on the machine.

With --scripted, models, frames and latencies are scripted: this shows the loop's logic and its schedule, never how good a model is.
The latencies of --board are inferred from token rates that others published, not measured by us:
  thor   O 7.5 s, P 0.14 s, V 1.8 s a call         orin   O 30 s, P 1.05 s, V 6.8 s a call
"""


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for name in built_in():
            print(f"{name:<16}{re.split('(?<=[.?]) ', load(name).about)[0]}")
        return 0
    _check(arguments)
    if arguments.video is not None:
        from compass_edge.cli.video_run import run_video  # numpy, onnxruntime: not needed to print a help text

        return run_video(arguments)
    from compass_edge.cli.scripted_run import run_scripted  # jsonschema: not needed to be examined by doctor

    arguments.executor = arguments.executor or "overlapped"
    arguments.tau = arguments.tau or "everywhere"
    if "speed" not in arguments:
        arguments.speed = _SPEED
    return run_scripted(arguments)


def _check(arguments: argparse.Namespace) -> None:
    if (arguments.video is None) == (arguments.scripted is None):
        came = "neither" if arguments.video is None else "both"
        raise UsageError(
            f"A run needs a VIDEO (with --task) or --scripted NAME (--list shows their names), and {came} came."
        )
    kind, other = (_SCRIPTED, "--scripted") if arguments.video is not None else (_VIDEO, "a VIDEO")
    for name in kind:
        if getattr(arguments, name, None) or (name == "speed" and name in arguments):
            raise UsageError(f"--{name} goes with {other}. Leave it out.")
    if arguments.record and arguments.play:
        raise UsageError("--record keeps the models' replies and --play does without the models. Choose one.")


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="a video, stream or camera through the loop; or a scripted episode",
        description="Runs an episode through the loop: O plans, P scores, V verifies, N decides. Shows it as it happens.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("video", nargs="?", metavar="VIDEO", help="a file, rtsp://..., /dev/video0, or a data set")
    parser.add_argument("--task", metavar="TEXT", help="what is to be done; an annotated video says it itself")
    parser.add_argument("--episode", metavar="ID", help="which one of a data set")
    parser.add_argument("--preset", metavar="NAME", help="which models: tiny comes with the package (tiny)")
    parser.add_argument("--threads", type=at_least(1), metavar="N", help="of each model (one a core)")
    parser.add_argument(
        "--realtime", action="store_true", help="play the video at its own rate, and tell how old the progress is"
    )
    parser.add_argument("--decoder", choices=DECODERS, help="of a stream or camera: on which hardware (software)")
    parser.add_argument("--report", metavar="DIR", help="write a page about the run: DIR/index.html")
    parser.add_argument("--scripted", metavar="SCENARIO", help="a built-in scenario, or a .json of your own")
    parser.add_argument("--list", action="store_true", help="the built-in scenarios, one line each")
    parser.add_argument(
        "--speed",
        type=speed,
        default=argparse.SUPPRESS,
        metavar="X",
        help="with --scripted: virtual seconds in a real one, or 'max' (8)",
    )
    parser.add_argument(
        "--executor",
        choices=("overlapped", "sequential", "pool"),
        help="who runs it; the events are the same (overlapped; of a video without --realtime: sequential)",
    )
    parser.add_argument(
        "--board", choices=tuple(BOARDS), help="with --scripted: whose latencies (the scenario's, or thor)"
    )
    parser.add_argument(
        "--tau",
        choices=("everywhere", "orienter", "nowhere"),
        help="who is told the expected transition (everywhere)",
    )
    parser.add_argument("--settings", metavar="FILE", help="the loop's settings as JSON; calibrate --out writes some")
    parser.add_argument("--journal", metavar="FILE", help="record every event; a kill costs none of them")
    parser.add_argument("--resume", action="store_true", help="go on with the journal where it ends")
    parser.add_argument("--record", metavar="FILE", help="keep the models' replies on a cassette")
    parser.add_argument("--play", metavar="FILE", help="take the models' replies from a cassette")
    parser.add_argument("--json", action="store_true", help="one JSON object an event, a progress, and a summary")
    parser.set_defaults(run=run)
