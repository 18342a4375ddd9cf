"""The journal of a run: begun or gone on with as the arguments say, and only with what it began with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from compass_edge.errors import UsageError
from compass_edge.loop.events import EpisodeStarted, Event
from compass_edge.loop.journal import Journal
from compass_edge.loop.recording import Recording
from compass_edge.loop.settings import Settings


def open_journal(
    path: str | None, resume: bool, clock: Callable[[], int], warn: Callable[[str], None]
) -> tuple[Journal | None, Recording]:
    if path is None:
        if resume:
            raise UsageError("--resume goes on with a journal. Name it with --journal FILE.")
        return None, Recording()
    if resume and Path(path).exists():
        journal, recording = Journal.resume(path, clock=clock, warn=warn)
        if recording.note:
            warn(recording.note)
        return journal, recording
    return Journal.create(path, clock=clock, warn=warn), Recording()


def must_match(past: list[Event], path: str, source: str, instruction: str, settings: Settings, what: str) -> None:
    """`what` is a scenario or a video, for those who took another one."""
    first = past[0]
    if not isinstance(first, EpisodeStarted) or first.source != source:
        began = first.source if isinstance(first, EpisodeStarted) else type(first).__name__
        raise UsageError(
            f"The journal '{path}' is of '{began}', and '{source}' was to go on. Resume the {what} that it began "
            "with, or name another file."
        )
    if first.instruction != instruction:
        raise UsageError(
            f"The journal '{path}' began with the task '{first.instruction}', and '{instruction}' came. Resume it with the same."
        )
    now = asdict(settings)
    other = sorted(name for name, value in now.items() if first.settings.get(name) != value)
    if other:
        told = ", ".join(f"{name} {first.settings.get(name)} (now {now[name]})" for name in other)
        raise UsageError(f"The journal '{path}' began with other settings: {told}. Resume it with the same.")
