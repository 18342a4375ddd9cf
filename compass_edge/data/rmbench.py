"""RMBench (RoboTwin-Platform/RMBench): {task}/{setting}/data/episode{i}.hdf5, its video and its language annotation.

The pictures are JPEGs that OpenCV encoded straight from RGB, so that a JPEG decoder gives red and blue swapped. The mp4
says 30 frames a second; one frame was taken every 15 steps of a simulation at 250 Hz.

language_annotation.json lists one text and number of frames a motion primitive. Primitives in a row that share their text
are one step, but for presses that are counted: each of them is three primitives (approach, press, release) with one and
the same text, and merging them would lose how often the button was pressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from compass_edge.data.array_film import ArrayFilm
from compass_edge.data.episode import Episode, StepTruth
from compass_edge.data.fields import Fields, read_json
from compass_edge.data.step_texts import steps_of
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import IntegrityError

FPS = 250 / 15
COUNTED = re.compile(r"\bone time\.?$")
PRIMITIVES_A_PRESS = 3


class RmbenchDataset:
    """Every episode below `root` (a setting, a task or all tasks), or one. Without its HDF5 file, its mp4 is the film."""

    format = "rmbench"

    def __init__(self, root: Path | str, camera: str | None = None) -> None:
        self.root = Path(root)
        self.camera = camera or "head_camera"
        self.name = f"rmbench/{self.root.resolve().name}"
        paths = [self.root]
        if self.root.is_dir():
            paths = [*sorted(self.root.rglob("video/episode*.mp4")), *sorted(self.root.rglob("data/episode*.hdf5"))]
        found = {(path.resolve().parents[1], _number(path)): path for path in paths}
        self._found = sorted(found.items())

    def __len__(self) -> int:
        return len(self._found)

    def episodes(self) -> Iterator[Episode]:
        annotations: dict[Path, Any] = {}
        for (setting, number), path in self._found:
            if setting not in annotations:
                told = setting / "language_annotation.json"
                annotations[setting] = Fields(read_json(told), f"'{told}'") if told.is_file() else None
            yield self._episode(setting, number, path, annotations[setting])

    def _episode(self, setting: Path, number: int, path: Path, annotation: Fields | None) -> Episode:
        film: ArrayFilm | VideoFilm
        if path.suffix == ".hdf5":
            film = ArrayFilm(path, f"observation/{self.camera}/rgb", fps=FPS, swapped=True)
        elif self.camera == "head_camera":
            film = VideoFilm(path)
        else:
            raise IntegrityError(
                f"'{path}' shows the head camera; the {self.camera} is only in data/{path.stem}.hdf5, and that is missing."
            )
        task = setting.parent.name
        steps = None
        if annotation is not None and f"episode_{number}" in annotation.raw:
            steps = annotated_steps(annotation, f"episode_{number}", film.frames)
        return Episode(
            id=f"rmbench/{task}/{setting.name}/{number}",
            task=f"rmbench/{task}",
            instruction=_instruction(setting, number) or task.replace("_", " "),
            film=film,
            frames=film.frames,
            fps=FPS,
            steps=steps,
        )


def annotated_steps(annotation: Fields, key: str, frames: int) -> tuple[StepTruth, ...]:
    """The steps of one episode: primitives put together, presses that are counted kept apart."""
    primitives = [
        _primitive(entry, f"{annotation.where}: {key}[{place}]") for place, entry in enumerate(annotation.items(key))
    ]
    where = f"{annotation.where}: {key}"
    spans, end = [], 0
    for text, run in groupby(primitives, key=lambda primitive: primitive[0]):
        lengths = [length for _, length in run]
        size = PRIMITIVES_A_PRESS if COUNTED.search(text) else len(lengths)
        if len(lengths) % size:
            raise IntegrityError(
                f"{where}: {text!r} should come {size} times in a row for every press, and it comes {len(lengths)} times."
            )
        for first in range(0, len(lengths), size):
            end += sum(lengths[first : first + size])
            spans.append((text, end))
    return steps_of(spans, frames, where)


def _primitive(entry: Any, where: str) -> tuple[str, int]:
    pair = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str)
    if not pair or type(entry[1]) is not int or entry[1] < 0:
        raise IntegrityError(f"{where} must be a text and a number of frames, and {entry!r} came.")
    return entry[0].strip(), entry[1]


def _instruction(setting: Path, number: int) -> str:
    path = setting / "instructions" / f"episode{number}.json"
    if not path.is_file():
        return ""
    fields = Fields(read_json(path), f"'{path}'")
    texts = fields.items("seen", []) or fields.items("unseen", [])
    if any(not isinstance(text, str) for text in texts):
        raise IntegrityError(f"'{path}': seen and unseen must be lists of texts, and {texts[:3]} came.")
    return texts[0] if texts else ""


def _number(path: Path) -> int:
    digits = path.stem.removeprefix("episode")
    if not digits.isdigit():
        raise IntegrityError(f"'{path}' should be called episode and a number.")
    return int(digits)
