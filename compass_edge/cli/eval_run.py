"""A run of `compass-edge eval`: select, evaluate, gather, print."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from compass_edge.cli.eval_facts import facts
from compass_edge.cli.eval_floors import floors_of, frame_alone
from compass_edge.cli.eval_models import Suite, choose_models, suite
from compass_edge.cli.eval_selection import Selection, select
from compass_edge.cli.eval_table import as_text
from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.ablation import ablation_methods
from compass_edge.eval.cache import Cache
from compass_edge.eval.loop_run import Executor
from compass_edge.eval.method import LoopMethod, Method, PrmMethod
from compass_edge.eval.negatives import NEGATIVES
from compass_edge.eval.report.canvas import styled
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.gather import gather
from compass_edge.eval.report.page import report_directory, write_report
from compass_edge.eval.report.plain import plain
from compass_edge.eval.runner import Evaluated, Evaluation
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.settings import Settings


def run_eval(arguments: argparse.Namespace) -> int:
    choose_models(arguments.models)  # what is wrong is said before anything is rendered or run
    if arguments.report is not None:
        report_directory(arguments.report)
        with styled():
            pass
    cache = _cache(arguments.cache)
    chosen = Selection(arguments.paths, arguments.tasks, arguments.seeds, arguments.negatives, arguments.limit)
    jobs = arguments.jobs or _cores()
    with ProgressBar("rendering", None) as bar:
        episodes = select(chosen, cache, jobs, bar.update)
    settings = _settings(arguments.settings, arguments.every, episodes)
    models = suite(arguments.models, episodes)
    methods = _methods(models, settings, arguments.executor, arguments.ablation)
    done = _evaluate(methods, episodes, cache, jobs)
    if done is None:
        return 130
    data = _gathered(done, episodes, models, settings, arguments)
    page = write_report(arguments.report, data) if arguments.report is not None else None
    if arguments.json:
        print(json.dumps({**plain(data), "cached": done.cached, "report": str(page) if page else None}, indent=2))
    else:
        print(as_text(data))
        if page is not None:
            print(f"\nreport      {page}")
    return 1 if done.failures else 0


def _cache(given: str | None) -> Path:
    path = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compass-edge"
    try:
        (path / "results").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"The cache '{path}' cannot be made: {error.strerror}. Choose another with --cache."
        ) from error
    return path


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _settings(file: str | None, every: int | None, episodes: Sequence[Episode]) -> Settings | None:
    """None: the defaults, with ticks a third of a second apart in every film, whatever its frame rate."""
    if file is None:
        return None if every is None else Settings(every=every)
    settings = Settings().overlaid(file)
    if every is not None:
        return replace(settings, every=every)
    if "every" in json.loads(Path(file).read_text("utf-8")):
        return settings
    rates = sorted({episode.fps for episode in episodes})
    if len(rates) > 1:
        raise UsageError(
            f"The settings '{file}' do not say 'every', and the films have {len(rates)} frame rates ({rates[0]:g} to "
            f"{rates[-1]:g} a second): say --every N."
        )
    return settings_at(rates[0], settings)


def _methods(models: Suite, settings: Settings | None, executor: Executor, ablated: bool) -> list[Method]:
    """Those whose tables come first run first."""
    loops = (
        ablation_methods(models.models, settings, executor)
        if ablated
        else (LoopMethod(models.models, settings, executor),)
    )
    return [PrmMethod(models.prm, settings), *loops]


def _evaluate(methods: Sequence[Method], episodes: Sequence[Episode], cache: Path, jobs: int) -> Evaluated | None:
    """None: stopped by the user."""
    slim = [
        replace(one, tracks={key: one.tracks[key] for key in ("path",) if key in one.tracks}) for one in episodes
    ]  # sent to other processes: nothing that no method reads
    known, total = 0, len(methods) * len(episodes)

    def on_progress(finished: int, _total: int, _what: str) -> None:
        nonlocal known
        known = finished
        bar.update(finished, total)

    try:
        with ProgressBar("evaluating", None) as bar:
            return Evaluation(
                methods, slim, cache=Cache(cache / "results", _warn), workers=jobs, on_progress=on_progress, warn=_warn
            ).run()
    except KeyboardInterrupt:
        print(
            f"compass-edge: stopped. {known} of {total} runs are done and kept in '{cache}'; the same command goes on there.",
            file=sys.stderr,
        )
        return None


def _gathered(
    done: Evaluated,
    episodes: Sequence[Episode],
    models: Suite,
    settings: Settings | None,
    arguments: argparse.Namespace,
) -> ReportData:
    floors = floors_of(episodes)
    at_best = frame_alone(*floors) if floors is not None else []
    negatives = sum(episode.kind in NEGATIVES for episode in episodes)
    positives = len(episodes) - negatives
    title = f"Evaluation on {positives} episode{'s' * (positives != 1)}"
    return gather(
        [*at_best, *done.results],
        episodes,
        facts(sys.argv[1:], episodes, models.models().names(), settings, arguments.executor),
        title=f"{title} and {negatives} negative{'s' * (negatives != 1)}" if negatives else title,
        notice=models.notice,
        floors=floors,
        failures=done.failures,
    )


def _warn(line: str) -> None:
    print(f"compass-edge: {line}", file=sys.stderr)
