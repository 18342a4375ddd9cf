"""`compass-edge replay`: a run from its journal, without models. What the rules do not allow is not replayed."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from compass_edge.cli.report import report_on
from compass_edge.errors import CompassError, IntegrityError
from compass_edge.loop.curve import curve
from compass_edge.loop.events import (
    Asked,
    CompletionProposed,
    Ended,
    EpisodeStarted,
    Event,
    FrameScored,
    Gap,
    Oriented,
    ReplyInvalid,
    Reviewed,
    Role,
    Stalled,
    StepBegun,
    StreamEnded,
    Verified,
)
from compass_edge.loop.navigator import (
    AwaitEnd,
    Begin,
    Command,
    End,
    NextStep,
    Orient,
    Propose,
    Review,
    Score,
    Stall,
    Verify,
    decide,
)
from compass_edge.loop.plan import Plan
from compass_edge.loop.recording import read_journal
from compass_edge.loop.state import State, apply, start

_SLEEP_S = 0.05
_ASKS: dict[type[Command], tuple[Role, Asked]] = {
    Orient: ("orienter", "first"),
    NextStep: ("orienter", "next"),
    Review: ("orienter", "review"),
    Score: ("prm", "score"),
    Verify: ("verifier", "verify"),
}


def checked(events: Iterable[Event], where: str = "") -> Iterator[tuple[Event, State]]:
    """Each event with the state after it. One that the Navigator's decision does not allow is an IntegrityError."""
    state: State | None = None
    for number, event in enumerate(events):
        record = f"Record {number}{where} ({type(event).__name__})"
        try:
            trouble, state = _step(state, event)
        except (CompassError, TypeError, ValueError, LookupError, AttributeError, StopIteration) as error:
            raise IntegrityError(f"{record} cannot be part of this episode: {error}. The file was altered.") from error
        if trouble:
            raise IntegrityError(
                f"{record} cannot come there: {trouble}. The file was altered, or is of another version."
            )
        yield event, state


def _step(state: State | None, event: Event) -> tuple[str, State]:
    if state is None:
        if not isinstance(event, EpisodeStarted):
            raise TypeError("the first event of an episode is EpisodeStarted")
        return "", start(event)
    if state.outcome is not None:
        return f"the episode has ended already ({state.outcome})", state
    always = (isinstance(event, Gap) and event.restart) or event == Ended("stopped")
    command = decide(state)
    if not always and not _allowed(state, command, event):
        return f"the Navigator's decision at this point is {command}", state
    return "", apply(state, event)


def _allowed(state: State, command: Command, event: Event) -> bool:
    if isinstance(event, ReplyInvalid):
        return (event.role, event.asked) == _ASKS.get(type(command))
    if isinstance(event, StreamEnded):
        return isinstance(command, (Orient, Score, AwaitEnd)) and event.frame.seq >= state.cursor.seq
    match command:
        case Orient(not_before):
            fresh = isinstance(event, Oriented) and event.frame.seq >= not_before
            return fresh and isinstance(event, Oriented) and _same_past(None, event.plan)
        case NextStep():
            return isinstance(event, Oriented) and event.plan is not None and _same_past(state.plan, event.plan)
        case Review():
            return isinstance(event, Reviewed) and _same_past(state.plan, event.plan)
        case Begin(step, subtask, from_plan):
            return event == StepBegun(step.id, state.the_plan.position, state.here, subtask, from_plan)
        case Score(after):
            return isinstance(event, (FrameScored, Gap)) and event.frame.seq > after.seq
        case Propose(frame, during, score, reason):
            return event == CompletionProposed(frame, during, score, reason)
        case Verify():
            proposal = state.the_step.proposal
            return isinstance(event, Verified) and proposal is not None and event.frame == proposal.frame
        case Stall():
            return event == Stalled(state.the_step.step_id, state.the_step.verifications)
        case End(outcome):
            return event == Ended(outcome)
        case AwaitEnd():
            return False


def _same_past(before: Plan | None, after: Plan | None) -> bool:
    """Satisfied steps are fixed: no reply of O can add one or take one away."""
    if after is None:
        return True
    done = [step for step in before.steps if step.satisfied] if before is not None else []
    return [step for step in after.steps if step.satisfied] == done == list(after.steps[: len(done)])


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
