"""`compass-edge run VIDEO`: footage, preset, journal, cassette, report and page, put together as the arguments say."""

from __future__ import annotations

import argparse
import contextlib
import sys
from dataclasses import replace
from typing import Any

from compass_edge.cli.footage import open_footage
from compass_edge.cli.footage_record import record_of
from compass_edge.cli.footage_run import Executor, FootageRun
from compass_edge.cli.report import report_on
from compass_edge.cli.run_journal import must_match, open_journal
from compass_edge.loop.call import Models
from compass_edge.loop.cassette import Cassette
from compass_edge.loop.cassette_models import played, recorded
from compass_edge.loop.recording import Recording
from compass_edge.loop.settings import Settings
from compass_edge.presets.preset import Preset
from compass_edge.presets.registry import find_preset
from compass_edge.run_page.page import page_directory, write_page

_UNKNOWN = ("ungrounded", "unplanned")  # outcomes of those who were shown what they do not know


def run_video(arguments: argparse.Namespace) -> int:
    preset = find_preset(arguments.preset or "tiny")
    footage = open_footage(
        arguments.video,
        arguments.task,
        realtime=arguments.realtime,
        episode=arguments.episode,
        decoder=arguments.decoder,
    )
    settings = settings_for(preset, footage.fps, arguments.settings, arguments.tau)
    if arguments.report is not None:
        page_directory(arguments.report)
    executor: Executor = arguments.executor or ("overlapped" if footage.live else "sequential")
    title = f"{footage.name}, {preset.name}, {executor}"
    with contextlib.ExitStack() as stack:
        models = _models(arguments, preset, stack)
        run = FootageRun(footage, models, settings, executor, report_on(title, sys.stdout, arguments.json))
        run.journal, recording = open_journal(arguments.journal, arguments.resume, run.now_ns, _warn)
        if run.journal is not None:
            stack.enter_context(run.journal)
        if recording.events:
            past = list(recording.events)
            must_match(past, arguments.journal, footage.source, footage.instruction, settings, "video")
        stack.enter_context(run.report)
        summary = _run(run, recording, preset, arguments.report)
    if run.stopped and run.journal is not None and not run.journal.failure:
        _warn(f"stopped. Go on with --journal {arguments.journal} --resume.")
    return 1 if summary["outcome"] in ("stopped", "unplanned") else 0


def _run(run: FootageRun, recording: Recording, preset: Preset, directory: str | None) -> dict[str, Any]:
    run.go(recording)
    summary = run.summary()
    if summary["outcome"] in _UNKNOWN and preset.knows:
        summary["note"] = preset.knows
    if directory is not None:
        summary["report"] = str(write_page(directory, record_of(run, summary, title=run.footage.name)))
    run.report.end(run.now_ns(), summary)
    return summary


def settings_for(preset: Preset, fps: float, file: str | None = None, tau: str | None = None) -> Settings:
    """The preset's; a file's own word goes before them."""
    settings = preset.settings(fps)
    if file is not None:
        settings = settings.overlaid(file)
    return settings if tau is None else replace(settings, tau=tau)  # type: ignore[arg-type]


def _models(arguments: argparse.Namespace, preset: Preset, stack: contextlib.ExitStack) -> Models:
    tape = arguments.play or arguments.record
    cassette = stack.enter_context(Cassette.open(tape, warn=_warn)) if tape else None
    if cassette is not None and arguments.play:
        return played(cassette, preset.names())
    models = preset.models(arguments.threads)
    return models if cassette is None else recorded(cassette, models)


def _warn(text: str) -> None:
    print(f"compass-edge: {text}", file=sys.stderr)
