"""A run of `compass-edge demo`: each episode through the loop, the progress model alone beside it, and a page about both."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from compass_edge.cli.footage import FilmFootage
from compass_edge.cli.footage_record import record_of
from compass_edge.cli.footage_run import Executor, FootageRun
from compass_edge.cli.report import Report, report_on
from compass_edge.cli.video_run import settings_for
from compass_edge.data.bundled import BUNDLED
from compass_edge.data.episode import Episode
from compass_edge.data.folder import FolderDataset
from compass_edge.eval.diagnosis import without_context
from compass_edge.eval.metrics import mean_absolute_error
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings
from compass_edge.presets.registry import find_preset
from compass_edge.run_page.page import page_directory, write_page


@dataclass(frozen=True, slots=True)
class Shown:
    """What came of an episode."""

    episode: str
    instruction: str
    outcome: str | None
    error: float | None  # of the loop's curve; None: it did not end
    without: float | None  # of the progress model's, alone
    page: str
    stopped: bool  # by the user


def run_demo(arguments: argparse.Namespace) -> int:
    preset = find_preset(arguments.preset)
    preset.settings(10.0)  # whether it is there is known before anything else is done
    folder = page_directory(arguments.out)
    if not arguments.json:
        print(f"Loading {preset.about}.", flush=True)
    models, shown = preset.models(arguments.threads), list[Shown]()
    for episode in FolderDataset(BUNDLED).episodes():
        report = report_on(f"{episode.id}, {preset.name}, {arguments.executor}", sys.stdout, arguments.json)
        settings = settings_for(preset, episode.fps)
        page = folder / episode.id.replace("/", "-")
        shown.append(show(episode, models, settings, report, page, executor=arguments.executor))
        if shown[-1].stopped:
            break
    print(json.dumps({"episodes": [asdict(one) for one in shown]}) if arguments.json else "\n".join(closing(shown)))
    return 130 if shown[-1].stopped else 0


def show(
    episode: Episode,
    models: Models,
    settings: Settings,
    report: Report,
    directory: Path,
    *,
    executor: Executor = "sequential",
) -> Shown:
    """One episode, drawn as it happens. Ctrl-C keeps what was computed."""
    run = FootageRun(FilmFootage(episode), models, settings, executor, report)
    with report:
        run.go()
        summary, alone, stopped = run.summary(), None, True
        with contextlib.suppress(KeyboardInterrupt):
            if not run.stopped:
                alone = without_context(models.prm, episode, settings).values
                summary["without"] = mean_absolute_error(alone, episode.progress())
                stopped = False
        facts = [] if alone is None else [("without context", f"{summary['without']:.1f} of 100")]
        page = write_page(directory, record_of(run, summary, title=episode.id, facts=facts, without=alone))
        summary["report"] = str(page)
        report.end(run.now_ns(), summary)
    errors = summary["error"], summary.get("without")
    return Shown(episode.id, episode.instruction, summary["outcome"], *errors, str(page), stopped)


def closing(shown: Sequence[Shown]) -> list[str]:
    typed = sys.argv[0] if sys.argv[0].startswith(".") else "compass-edge"  # `make demo` runs .venv/bin/compass-edge
    return [
        "",
        "mean absolute error of 100, and a page about each (open it in a browser; it needs nothing else)",
        f"{'':<8}{'with context':>14}{'without':>10}",
        *(f"{one.episode:<8}{_number(one.error):>14}{_number(one.without):>10}   {one.page}" for one in shown),
        "With context is the loop: O says which step is at hand, P scores that step, V rules whether it is done.",
        "Without is the same P, shown the whole video under the whole instruction.",
        "",
        f'Next: {typed} run YOUR_VIDEO.mp4 --task "..."         your own video (or rtsp://..., /dev/video0)',
        f"      {typed} run bundled --episode R1/0 --realtime   at the video's own rate: how old is the progress?",
        f"      {typed} frames --demo                           the path of a frame, from a file to patches",
        f"      {typed} doctor                                  what is installed, what is missing",
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
