"""`compass-edge calibrate`: the candidate rule's thresholds, fitted to a model's labelled curves."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.cli.whole import at_least
from compass_edge.errors import CompassError, UsageError
from compass_edge.loop.calibration import Calibration, Curve, Score, Weights, calibrate, grid
from compass_edge.loop.candidate import CandidateRule

_FEW = 10
_TUNED = ("high", "hold", "peak", "drop", "drop_hold")

_EPILOG = """\
A line of LABELS is a curve, one score of the model a tick, and the tick at which the step was truly complete:
  {"scores": [0.1, 0.2, 0.7, 0.9, 0.9], "done_at": 3, "name": "episode 7, step 2"}
done_at counts from 0 and is null when the step was never completed; the name is optional, other keys are ignored.

Every curve is replayed tick by tick with an ideal Verifier: it accepts a candidate whose frame is at done_at or later and
rejects all others, eight at most. The thresholds of least cost win, of equals those nearest to the defaults:
  cost = delay-weight * mean ticks from done_at to the proposal that is accepted (missed: the rest of the curve)
       + early-weight * early proposals a curve (each wastes a verification; the curves that have one are the paper's alpha)
       + miss-weight  * share of completions that are never proposed
The row 'held out' scores each curve by thresholds that were chosen without it: believe this one.

Examples:
  compass-edge calibrate curves.jsonl
  compass-edge calibrate curves.jsonl --early-weight 10 --out settings.json
  make_curves | compass-edge calibrate - --json
"""


def _came(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _curve(where: str, line: bytes) -> Curve:
    try:
        values = json.loads(line.decode("utf-8-sig").rstrip())
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UsageError(f"{where}: expected a JSON object on one line, and it cannot be read: {why}.") from None
    if not isinstance(values, dict):
        raise UsageError(f"{where}: expected an object with 'scores' and 'done_at', and {_came(values)} came.")
    for key, meaning in (("scores", "a score a tick"), ("done_at", "the tick of completion, or null")):
        if key not in values:
            raise UsageError(
                f"{where}: the key '{key}' ({meaning}) is missing. There are: {', '.join(values) or 'none'}."
            )
    scores, done_at, name = values["scores"], values["done_at"], values.get("name", "")
    if not isinstance(scores, list) or not scores:
        raise UsageError(f"{where}: 'scores' must be a list of at least one score, and {_came(scores)} came.")
    for tick, score in enumerate(scores):
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
            raise UsageError(f"{where}: 'scores' must be numbers from 0 to 1, and at tick {tick} {_came(score)} came.")
    whole = isinstance(done_at, int) and not isinstance(done_at, bool)
    if done_at is not None and not (whole and 0 <= done_at < len(scores)):
        raise UsageError(
            f"{where}: 'done_at' must be the index of a score, 0 to {len(scores) - 1}, or null if the step was never "
            f"completed, and {_came(done_at)} came."
        )
    if not isinstance(name, str):
        raise UsageError(f"{where}: 'name' must be a text, and {_came(name)} came.")
    return Curve(tuple(map(float, scores)), done_at, name)


def _curves(source: str, lines: Iterable[bytes]) -> list[Curve]:
    curves = [_curve(f"{source}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]
    if not curves:
        raise UsageError(f"{source}: expected a curve a line, and there is none. See compass-edge calibrate --help.")
    return curves


def _read(labels: str) -> list[Curve]:
    if labels == "-":
        return _curves("stdin", sys.stdin.buffer)
    try:
        with Path(labels).open("rb") as file:
            return _curves(labels, file)
    except FileNotFoundError:
        raise UsageError(
            f"There is no file '{labels}'. Expected labelled curves, one a line, or - for stdin."
        ) from None
    except OSError as error:
        raise UsageError(f"'{labels}' cannot be read: {error.strerror}.") from None


@contextmanager
def _settings_file(out: str | None) -> Iterator[IO[str] | None]:
    """Opened before the search, so that a wrong path is known at once; in place only when all went well."""
    if out is None:
        yield None
        return
    path = Path(out).resolve()
    if path.exists() and not path.is_file():
        raise UsageError(f"--out must name a file, and '{out}' is none.")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = draft.open("x", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--out '{out}' cannot be written: {error.strerror}.") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise CompassError(f"--out '{out}' could not be written: {error.strerror}.") from None
    finally:
        draft.unlink(missing_ok=True)


def _notes(curves: list[Curve], result: Calibration) -> list[str]:
    notes = []
    if len(curves) < _FEW:
        notes.append(f"{len(curves)} curves are few: the numbers mean little. Label {_FEW} or more, better 100.")
    if result.held_out is None:
        notes.append("only one curve is completed: nothing could be held out, and the fit may be to this curve alone.")
    elif result.held_out.cost >= result.defaults.cost:
        notes.append("on curves that were held out the fit is no better than the defaults: keep the defaults.")
    if result.at_the_edge:
        notes.append(f"high {result.rule.high:g} is the last value that was tried: do the scores use the range 0 to 1?")
    return notes


def _row(label: str, score: Score) -> str:
    return (
        f"{label:10}{score.early:12.2f}{score.early_rate:10.1%}{score.delay_mean:12.1f}{score.delay_p95:8.0f}"
        f"{score.misses:9}{score.miss_rate:9.1%}{score.stalls:9}{score.cost:10.2f}"
    )


def _as_text(curves: list[Curve], result: Calibration, notes: list[str]) -> str:
    completions = sum(curve.done_at is not None for curve in curves)
    lines = [
        f"{len(curves)} curves, {completions} completed, {sum(len(curve.scores) for curve in curves)} ticks",
        "",
        f"{'':10}{'early/curve':>12}{'alpha':>10}{'delay mean':>12}{'p95':>8}{'missed':>9}{'':9}{'stalled':>9}{'cost':>10}",
        _row("defaults", result.defaults),
        _row("fitted", result.fitted),
    ]
    if result.held_out is not None:
        lines.append(_row("held out", result.held_out))
    lines += ["", f"{'':10}" + "".join(f"{key:>10}" for key in _TUNED)]
    for label, rule in (("defaults", CandidateRule()), ("fitted", result.rule)):
        lines.append(f"{label:10}" + "".join(f"{getattr(rule, key):10g}" for key in _TUNED))
    if result.folds:
        ranges = [{getattr(rule, key) for rule in result.folds} for key in _TUNED]
        spans = (f"{min(seen):g}" if len(seen) == 1 else f"{min(seen):g}-{max(seen):g}" for seen in ranges)
        lines.append(f"{f'{len(result.folds)} folds':10}" + "".join(f"{span:>10}" for span in spans))
    lines += ["", f"{'high':10}{'alpha':>10}{'missed':>10}{'delay mean':>12}   (all else as fitted)"]
    for high, score in result.roc:
        mark = "  <- fitted" if high == result.rule.high else ""
        lines.append(f"{high:<10g}{score.early_rate:10.1%}{score.miss_rate:10.1%}{score.delay_mean:12.1f}{mark}")
    return "\n".join([*lines, *([""] if notes else []), *(f"note: {note}" for note in notes)])


def run(arguments: argparse.Namespace) -> int:
    curves = _read(arguments.labels)
    weights = Weights(arguments.delay_weight, arguments.early_weight, arguments.miss_weight)
    with _settings_file(arguments.out) as file:
        with ProgressBar("settings", len(grid(CandidateRule()))) as bar:
            result = calibrate(curves, weights, arguments.folds, progress=bar.update)
        settings = {"candidate": asdict(result.rule)}
        if file is not None:
            file.write(json.dumps(settings, indent=2) + "\n")
    notes = _notes(curves, result)
    if arguments.json:
        numbers = asdict(result)
        numbers["roc"] = [{"high": high, **asdict(score)} for high, score in result.roc]
        del numbers["rule"]
        counts = {"curves": len(curves), "completions": sum(curve.done_at is not None for curve in curves)}
        print(json.dumps({**settings, **counts, "weights": asdict(weights), **numbers, "notes": notes}, indent=2))
    else:
        print(_as_text(curves, result, notes))
        if arguments.out is not None:
            print(f"\nwrote {arguments.out}")
    return 0


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text}")
    return value


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="fit the candidate rule to a model's labelled curves",
        description="Fits the thresholds of the candidate rule (high, hold, peak, drop, drop_hold) to labelled curves of a "
        "model,\nand says what that gains over the defaults on curves that were held out.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("labels", metavar="LABELS", help="a JSON-lines file of labelled curves, or - for stdin")
    for name, meaning in (
        ("delay", "of a tick of delay"),
        ("early", "of an early proposal, in ticks"),
        ("miss", "of a missed completion, in ticks"),
    ):
        default = getattr(Weights(), name)
        parser.add_argument(
            f"--{name}-weight", type=_weight, default=default, metavar="W", help=f"cost {meaning} ({default:g})"
        )
    parser.add_argument("--folds", type=at_least(2), default=5, metavar="K", help="folds of the cross-validation (5)")
    parser.add_argument("--out", metavar="FILE", help="write the settings as JSON for the loop; all or nothing")
    parser.add_argument("--json", action="store_true", help="print the settings and the numbers as JSON")
    parser.set_defaults(run=run)
