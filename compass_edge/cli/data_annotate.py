"""`compass-edge data annotate`: mark the steps of a video by hand, in a browser on this machine."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def run_annotate(arguments: argparse.Namespace) -> int:
    from compass_edge.data.annotate_server import AnnotateServer
    from compass_edge.data.annotation import Annotation

    annotation = Annotation(arguments.path, arguments.out, arguments.task)
    server = AnnotateServer(annotation, arguments.port)
    verb = f"goes on with {annotation.steps} steps" if annotation.resumed else "begins"
    print(f"Open {server.url}")
    print(
        f"{annotation.film.path.name}: {annotation.film.frames} frames; {verb}. Saved after every change to {annotation.out}."
    )
    print("Ctrl-C ends it.", flush=True)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
    finally:
        server.server_close()
    if annotation.saves:
        unnamed = f", {annotation.unnamed} of them without a sentence yet" if annotation.unnamed else ""
        print(f"Saved: {annotation.out} with {annotation.steps} steps{unnamed}.")
    else:
        print("Nothing was changed.")
    return 0


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"expected 0 to 65535, got {text}")
    return value


def register(actions: Any) -> None:
    annotate = actions.add_parser(
        "annotate",
        help="mark the steps of a video by hand",
        description="Opens a page on this machine to go through a video frame by frame, write its instruction, mark where each "
        "step is done and say what it was. Saves our own format after every change and goes on where it was left.",
        epilog="Example:\n  compass-edge data annotate episode.mp4 --task 'Press the red button three times.'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    annotate.add_argument("path", help="the video")
    annotate.add_argument(
        "--out",
        metavar="JSON",
        help="the file or folder to save to; by default NAME.json beside the video. A data set reads it only if its root "
        "folder holds the video too",
    )
    annotate.add_argument("--task", metavar="TEXT", help="the instruction; it can be written on the page too")
    annotate.add_argument("--port", type=_port, default=0, help="of the page, on 127.0.0.1 (any free one)")
    annotate.set_defaults(run=run_annotate)
