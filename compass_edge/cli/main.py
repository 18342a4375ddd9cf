"""`compass-edge`: one command, one sentence per error, exit codes 0 ok, 1 task, 2 usage, 3 environment, 4 integrity."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from compass_edge import __version__
from compass_edge.cli import bench, boards, calibrate, data, demo, doctor, frames, models, replay, run, sim
from compass_edge.cli import eval as evaluate
from compass_edge.errors import CompassError

_DESCRIPTION = """\
compass-edge tells a robot how far its task has come, live, on the robot's own computer.

Start here:
  compass-edge doctor               what is installed, what is missing, and the cure
  compass-edge demo                 the loop on three episodes, with compass-tiny (once it is trained)
  compass-edge run episode.mp4 --task "..."   your own video, stream or camera
  compass-edge run --list           scripted episodes, to watch the loop decide
  compass-edge frames episode.mp4   the path of a frame alone; frames --demo on a generated clip
  compass-edge data inspect bundled three episodes that come with the package; data annotate marks your own
  compass-edge eval bundled         how well progress is reported on them; --tasks all for the simulator's
  compass-edge boards               robot computers with presets, and what fits into their memory
  compass-edge bench frames         this machine, ours beside its rivals
"""

_EPILOG = """\
Every command explains itself with --help and speaks JSON with --json.
Exit codes: 0 done, 1 the task failed, 2 wrong usage, 3 something must be installed first, 4 a file is not what it should be.
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compass-edge",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"compass-edge {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in (doctor, boards, demo, run, frames, replay, bench, calibrate, evaluate, data, sim, models):
        command.register(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = build_parser()
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.print_help()
        return 2
    try:
        code: int = chosen.run(chosen)
        sys.stdout.flush()
    except CompassError as error:
        print(f"compass-edge: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("compass-edge: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output left: `compass-edge ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
