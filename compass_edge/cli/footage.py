"""Footage: what a run looks at. A film, read as fast as the models are or played at its own rate; or a live source."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from compass_edge.cli.played_ticks import PlayedTicks
from compass_edge.data.dataset import find_episode, open_dataset
from compass_edge.data.episode import Episode
from compass_edge.data.video import SUFFIXES
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.source import Decoder, Source, open_source
from compass_edge.loop.mark import Mark
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Ticks

_HISTORY = 32  # frames of a live ring: a second, should the loop be held up
_PATIENCE_S = 10.0  # for the first frame
_USUAL_RATE = 30.0
_ANNOTATED = (*SUFFIXES, ".json", ".hdf5", ".h5")  # any other file is a video, or its decoder says that it is not
_STREAM = re.compile(r"[a-z][a-z0-9+.-]*://|/dev/video")


class Footage(Protocol):
    """`since_ns`, here: what the clock of the run is ahead of the machine's."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str:
        """What a journal knows it by."""

    @property
    def instruction(self) -> str: ...
    @property
    def fps(self) -> float: ...
    @property
    def live(self) -> bool:
        """Its frames come by themselves, and age."""

    @property
    def episode(self) -> Episode | None:
        """None: nothing is known but what comes."""

    def open(self, settings: Settings, since_ns: int, numbered_from: int) -> AbstractContextManager[Ticks]:
        """Its ticks, for as long as they are needed. `numbered_from`: that of the first frame, if it is live."""

    def at_s(self, mark: Mark) -> float:
        """Where in the footage that frame is."""


@dataclass(frozen=True, slots=True)
class FilmFootage:
    episode: Episode
    realtime: bool = False

    @property
    def name(self) -> str:
        return self.episode.id

    @property
    def source(self) -> str:
        return f"film:{self.episode.id}@{self.episode.film.key}"

    @property
    def instruction(self) -> str:
        return self.episode.instruction

    @property
    def fps(self) -> float:
        return self.episode.fps

    @property
    def live(self) -> bool:
        return self.realtime

    @contextmanager
    def open(self, settings: Settings, since_ns: int, numbered_from: int) -> Iterator[Ticks]:
        film, frames = self.episode.film, self.episode.frames
        if not self.realtime:
            yield film.ticks(settings, frames)
            return
        if numbered_from:
            raise UsageError("A film cannot be played on from its middle: --resume it without --realtime.")
        if not isinstance(film, VideoFilm) or film.crop is not None or film.start_s or frames < film.frames:
            raise UsageError(
                f"Only a whole video file can be played at its own rate, and '{self.name}' is a part of one, or no video. "
                "Leave out --realtime."
            )
        with open_source(str(film.path), realtime=True, history=_HISTORY) as source:
            yield _started(source, settings, since_ns, key=film.key)

    def at_s(self, mark: Mark) -> float:
        return mark.seq / self.fps if self.realtime else mark.captured_ns / 1e9


class LiveFootage:
    """A stream or a camera. It is opened at once: whether it answers is known before models are loaded."""

    live, episode = True, None

    def __init__(self, url: str, instruction: str, decoder: Decoder) -> None:
        self.name, self.instruction = _without_password(url), instruction
        self._source = open_source(url, history=_HISTORY, decoder=decoder)
        self._first_ns: int | None = None

    @property
    def source(self) -> str:
        return f"live:{self.name}"

    @property
    def fps(self) -> float:
        return self._source.info.frame_rate or _USUAL_RATE

    @contextmanager
    def open(self, settings: Settings, since_ns: int, numbered_from: int) -> Iterator[Ticks]:
        with self._source as source:
            yield _started(source, settings, since_ns, numbered_from=numbered_from)

    def at_s(self, mark: Mark) -> float:
        if self._first_ns is None:
            self._first_ns = mark.captured_ns
        return (mark.captured_ns - self._first_ns) / 1e9


def open_footage(
    video: str,
    task: str | None,
    *,
    realtime: bool = False,
    episode: str | None = None,
    decoder: Decoder | None = None,
) -> FilmFootage | LiveFootage:
    """A stream, a camera, or whatever a data set can be read from, if it holds one episode or `episode` names one."""
    if _STREAM.match(video):
        if task is None:
            raise UsageError(f"Nobody knows what '{video}' is to show: say the task with --task \"...\".")
        return LiveFootage(video, task, decoder or "software")
    if decoder is not None:
        raise UsageError("--decoder is for a stream or a camera: a file is decoded on the CPU. Leave it out.")
    path = Path(video)
    dataset = open_dataset(path, "video" if path.is_file() and path.suffix not in _ANNOTATED else None, task=task)
    if episode is not None:
        found = find_episode(dataset, episode)
    elif len(dataset) == 1:
        found = next(iter(dataset.episodes()))
    else:
        raise UsageError(f"'{video}' has {len(dataset)} episodes: choose one with --episode ID.")
    if task is None and dataset.format == "video":
        raise UsageError(f"'{video}' does not say what it is to show: say the task with --task \"...\".")
    return FilmFootage(found if task is None else _told(found, task), realtime)


def _told(episode: Episode, task: str) -> Episode:
    """Under another instruction than its own, its steps are true of nothing."""
    return episode if task == episode.instruction else replace(episode, instruction=task, steps=None)


def _started(
    source: Source, settings: Settings, since_ns: int, *, key: str = "", numbered_from: int = 0
) -> PlayedTicks:
    ticks = PlayedTicks(source, settings, since_ns, key, numbered_from)
    source.start()
    until = time.monotonic() + _PATIENCE_S
    while ticks.after(-1) is None:
        if ticks.over or time.monotonic() > until:
            why = source.failure or f"none came within {_PATIENCE_S:g} s"
            raise CompassError(f"A run begins with the first frame of '{_without_password(source.url)}': {why}.")
        time.sleep(0.005)
    return ticks


def _without_password(url: str) -> str:
    return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", r"\1", url)
