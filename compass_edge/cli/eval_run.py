"""A run of `compass-edge eval`: select, evaluate, gather, print."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from compass_edge.cli.eval_facts import facts
from compass_edge.cli.eval_floors import floors_of, frame_alone
from compass_edge.cli.eval_models import Suite, choose_models, suite
from compass_edge.cli.eval_selection import Selection, select
from compass_edge.cli.eval_suite import (
    EXAMS,
    Batch,
    blind_results,
    headline,
    suite_batches,
    suite_episodes,
    suite_findings,
)
from compass_edge.cli.eval_table import as_text
from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.ablation import ablation_methods
from compass_edge.eval.cache import Cache
from compass_edge.eval.findings import Findings
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
from compass_edge.eval.speed import THREADS
from compass_edge.loop.settings import Settings


def run_eval(arguments: argparse.Namespace) -> int:
    name, jobs = arguments.models or ("tiny" if arguments.suite else "oracle"), arguments.jobs or _cores()
    threads = 1 if jobs > 1 else None
    base = _checked(name, threads, arguments)
    cache = _cache(arguments.cache)
    episodes = _selected(arguments, cache, jobs)
    settings = _settings(arguments.settings, arguments.every, episodes, base)
    models = suite(name, episodes, threads)
    batches = [Batch(_methods(models, settings, arguments.executor, arguments.ablation), episodes)]
    if arguments.suite:
        batches += suite_batches(models, settings, episodes)
    done = _evaluate(batches, cache, jobs)
    if done is None:
        return 130
    findings = None
    if arguments.suite:
        timed = suite(name, episodes, THREADS)
        findings = suite_findings(done.results, episodes, timed, settings, live=arguments.live)
    data = _gathered(done, episodes, models, settings, arguments, findings)
    page = write_report(arguments.report, data) if arguments.report is not None else None
    if arguments.json:
        parts = {**headline(data), **plain(data)}
        print(json.dumps({**parts, "cached": done.cached, "report": str(page) if page else None}, indent=2))
    else:
        print(as_text(data))
        if page is not None:
            print(f"\nreport      {page}")
    return 1 if done.failures else 0


def _checked(name: str, threads: int | None, arguments: argparse.Namespace) -> Callable[[float], Settings] | None:
    """The models' own settings, by a film's rate. What is wrong is said before anything is rendered or run."""
    preset, options = choose_models(name)
    if arguments.suite and (arguments.paths or arguments.tasks):
        raise UsageError("--suite names its own episodes: leave out data sets and --tasks.")
    if arguments.live and not arguments.suite:
        raise UsageError("--live is a part of a suite: say --suite sim too.")
    if arguments.report is not None:
        report_directory(arguments.report)
        with styled():
            pass
    if not preset.told:
        preset.make((), options, threads)
    if preset.settings is not None:
        preset.settings(10.0)
    return preset.settings


def _selected(arguments: argparse.Namespace, cache: Path, jobs: int) -> list[Episode]:
    with ProgressBar("rendering", None) as bar:
        if arguments.suite:
            return suite_episodes(arguments.limit, arguments.seeds, cache, jobs, bar.update)
        chosen = Selection(arguments.paths, arguments.tasks, arguments.seeds, arguments.negatives, arguments.limit)
        return select(chosen, cache, jobs, bar.update)


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


def _settings(
    file: str | None, every: int | None, episodes: Sequence[Episode], own: Callable[[float], Settings] | None
) -> Settings | None:
    """None: the defaults, with ticks a third of a second apart in every film, whatever its frame rate."""
    if file is None and own is None:
        return None if every is None else Settings(every=every)
    rates = sorted({episode.fps for episode in episodes})
    settings = own(rates[0]) if own is not None else settings_at(rates[0])
    said = every is not None
    if file is not None:
        settings = settings.overlaid(file)
        said = said or "every" in json.loads(Path(file).read_text("utf-8"))
    if len(rates) > 1 and not said:
        whose = f"The settings '{file}'" if file is not None else "These models' settings"
        raise UsageError(
            f"{whose} do not say 'every', and the films have {len(rates)} frame rates ({rates[0]:g} to {rates[-1]:g} a second): "
            "say --every N."
        )
    return settings if every is None else replace(settings, every=every)


def _methods(models: Suite, settings: Settings | None, executor: Executor, ablated: bool) -> list[Method]:
    """Those whose tables come first run first."""
    loops = (
        ablation_methods(models.models, settings, executor)
        if ablated
        else (LoopMethod(models.models, settings, executor),)
    )
    return [PrmMethod(models.prm, settings, wording=models.wording), *loops]


def _evaluate(batches: Sequence[Batch], cache: Path, jobs: int) -> Evaluated | None:
    """None: stopped by the user."""
    total = sum(len(batch.methods) * len(batch.episodes) for batch in batches)
    known, before = 0, 0

    def on_progress(finished: int, _total: int, _what: str) -> None:
        nonlocal known
        known = before + finished
        bar.update(known, total)

    parts: list[Evaluated] = []
    try:
        with ProgressBar("evaluating", None) as bar:
            for batch in batches:
                kept = Cache(cache / "results", _warn)
                slim = [_slim(episode, batch.tracks) for episode in batch.episodes]
                one = Evaluation(
                    batch.methods, slim, cache=kept, workers=jobs, on_progress=on_progress, warn=_warn
                )  # fmt: skip
                parts.append(one.run())
                before += len(batch.methods) * len(batch.episodes)
    except KeyboardInterrupt:
        print(
            f"compass-edge: stopped. {known} of {total} runs are done and kept in '{cache}'; the same command goes on there.",
            file=sys.stderr,
        )
        return None
    return Evaluated(
        tuple(result for part in parts for result in part.results),
        tuple(failure for part in parts for failure in part.failures),
        sum(part.cached for part in parts),
    )


def _slim(episode: Episode, tracks: Sequence[str]) -> Episode:
    """As it is sent to other processes: nothing that no method reads."""
    return replace(episode, tracks={key: episode.tracks[key] for key in tracks if key in episode.tracks})


def _gathered(
    done: Evaluated,
    episodes: Sequence[Episode],
    models: Suite,
    settings: Settings | None,
    arguments: argparse.Namespace,
    findings: Findings | None,
) -> ReportData:
    floors = floors_of(episodes)
    at_best = frame_alone(*floors) if floors is not None else []
    negatives = sum(episode.kind in NEGATIVES for episode in episodes)
    positives = len(episodes) - negatives
    title = f"Evaluation on {positives} episode{'s' * (positives != 1)}"
    blind = blind_results(episodes, settings) if findings is not None else []
    return gather(
        [*at_best, *(one for one in done.results if one.method not in EXAMS), *blind],
        episodes,
        facts(sys.argv[1:], episodes, models.models().names(), settings, arguments.executor),
        title=f"{title} and {negatives} negative{'s' * (negatives != 1)}" if negatives else title,
        notice=models.notice,
        floors=floors,
        failures=done.failures,
        findings=findings,
    )


def _warn(line: str) -> None:
    print(f"compass-edge: {line}", file=sys.stderr)
