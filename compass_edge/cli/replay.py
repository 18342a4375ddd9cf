"""`compass-edge replay`: a run from its journal, without models. What the rules do not allow is not replayed."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from typing import Any

from compass_edge.cli.report import report_on
from compass_edge.errors import CompassError
from compass_edge.loop.curve import curve
from compass_edge.loop.events import EpisodeStarted, Event
from compass_edge.loop.recording import read_journal
from compass_edge.loop.replay import checked

_SLEEP_S = 0.05


def _print_curve(events: list[Event], form: str) -> None:
    points = [
        {"frame": point.frame, "live": point.live, "rebased": point.rebased, "step": point.step_id}
        for point in curve(events)
    ]
    if form == "json":
        print(json.dumps(points, indent=2))
        return
    table = csv.DictWriter(sys.stdout, ("frame", "live", "rebased", "step"), lineterminator="\n")
    table.writeheader()
    table.writerows({**point, "live": f"{point['live']:.3f}", "rebased": f"{point['rebased']:.3f}"} for point in points)


def run(arguments: argparse.Namespace) -> int:
    recording = read_journal(arguments.journal)
    if recording.note:
        print(f"compass-edge: {recording.note}", file=sys.stderr)
    if not recording.events:
        raise CompassError(f"The journal '{arguments.journal}' has no event yet: there is nothing to replay.")
    told = list(checked(recording.events, f" of the journal '{arguments.journal}'"))
    if arguments.curve:
        _print_curve(list(recording.events), arguments.curve)
        return 0
    first = recording.events[0]
    source = first.source if isinstance(first, EpisodeStarted) else ""
    report = report_on(f"replay of {source or arguments.journal}", sys.stdout, arguments.json)
    with report:
        now_ns = recording.at_ns[0]
        for (event, state), at_ns in zip(told, recording.at_ns, strict=True):
            while arguments.speed is not None and now_ns < at_ns:
                nap = min((at_ns - now_ns) / 1e9 / arguments.speed, _SLEEP_S)
                time.sleep(nap)
                now_ns = min(at_ns, now_ns + max(round(nap * arguments.speed * 1e9), 1))
                report.look(now_ns, None, None)
            now_ns = max(now_ns, at_ns)
            report.event(event, state, at_ns)
        report.end(recording.at_ns[-1], report.summary(recording.at_ns[-1] / 1e9))
    return 0


def speed(text: str) -> float | None:
    """Virtual seconds in a real one; None: as fast as it goes."""
    if text == "max":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"expected a number above 0 or 'max', got {text}")
    return value


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "replay",
        help="a run from its journal, without models",
        description="Reproduces a run from its journal. Every event is checked: it must be one that the Navigator's rules "
        "allow at that point. A tail that was cut off is left out and said so.",
        epilog="Examples:\n  compass-edge replay run.journal\n  compass-edge replay run.journal --speed 4\n"
        "  compass-edge replay run.journal --curve csv > curve.csv",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("journal", metavar="JOURNAL", help="what `compass-edge run --journal` wrote")
    parser.add_argument(
        "--speed", type=speed, metavar="X", help="recorded seconds in a real one, or 'max' (max)", default=None
    )
    parser.add_argument(
        "--curve", choices=("csv", "json"), help="instead: progress at every scored frame, live and by the final plan"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object an event, a progress, and a summary")
    parser.set_defaults(run=run)
