"""What a model is calibrated on: frames of our own, since a quantizer's usual data sets come from a hub, and show no robot."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.data.bundled import NAME as BUNDLED
from compass_edge.data.dataset import open_dataset
from compass_edge.data.episode import Episode
from compass_edge.data.film import Picture
from compass_edge.engines.picture_url import picture_url
from compass_edge.errors import CompassError, UsageError
from compass_edge.models import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
FRAMES = 32
MOST_PIXELS = 640 * 480
_ANYTHING = "carry out its task"
_PROMPT = (
    "A robot is to: {task}\nSay first what the frame shows of it, with the number of each kind of object, and only then whether it is "
    'done, as one JSON object: {{"shows": "...", "done": true or false}}.'
)


@dataclass(frozen=True, slots=True)
class Sample:
    picture: Path
    text: str


@dataclass(frozen=True, slots=True)
class Calibration:
    source: str
    samples: tuple[Sample, ...]

    @property
    def digest(self) -> str:
        """Of every picture and text, wherever the pictures lie."""
        hashed = hashlib.sha256()
        for sample in self.samples:
            try:
                content = sample.picture.read_bytes()
            except OSError as error:
                raise CompassError(f"'{sample.picture}' cannot be read: {error.strerror or error}.") from error
            hashed.update(hashlib.sha256(content).digest() + hashlib.sha256(sample.text.encode()).digest())
        return hashed.hexdigest()

    @property
    def fields(self) -> list[dict[str, Any]]:
        return [{"picture": str(sample.picture.absolute()), "text": sample.text} for sample in self.samples]


def gather(frames: str | None, folder: Path, most: int = FRAMES) -> Calibration:
    """Of a folder of pictures, or of any data set that `compass-edge data inspect` reads; without one, of the bundled episodes.

    Frames of a data set are written into `folder`, and taken from there by the next run.
    """
    if most < 1:
        raise UsageError(f"Calibration needs at least one frame, and {most} were asked for.")
    source = frames or BUNDLED
    if source != BUNDLED and (pictures := pictures_of(Path(source))):
        chosen = _spread(pictures, most)
        return Calibration(source, tuple(Sample(path, _PROMPT.format(task=_ANYTHING)) for path in chosen))
    return _of_episodes(source, folder, most)


def pictures_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return sorted(found for found in path.iterdir() if found.suffix.lower() in SUFFIXES and found.is_file())


def _of_episodes(source: str, folder: Path, most: int) -> Calibration:
    record = folder / "calibration.json"
    asked = {"source": source, "most": most}
    if (known := _known(record, asked)) is not None:
        return Calibration(source, known)
    episodes = list(open_dataset(source).episodes())
    folder.mkdir(parents=True, exist_ok=True)
    samples: list[Sample] = []
    for episode, share in zip(episodes, _shares(len(episodes), most), strict=True):
        for number, picture in _frames(episode, share):
            path = folder / f"{len(samples):04}.png"
            path.write_bytes(_png(picture))
            samples.append(Sample(path, _PROMPT.format(task=_task_at(episode, number))))
    if not samples:
        raise UsageError(f"There is no frame in '{source}' to calibrate on. Name a folder of pictures with --frames.")
    lines = [{"picture": sample.picture.name, "text": sample.text} for sample in samples]
    record.write_text(json.dumps({**asked, "samples": lines}, indent=1), "utf-8")
    return Calibration(source, tuple(samples))


def _known(record: Path, asked: dict[str, Any]) -> tuple[Sample, ...] | None:
    try:
        document = json.loads(record.read_text("utf-8"))
        if any(document[name] != value for name, value in asked.items()):
            return None
        found = tuple(Sample(record.parent / line["picture"], line["text"]) for line in document["samples"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if all(sample.picture.is_file() for sample in found) else None


def _shares(episodes: int, most: int) -> list[int]:
    return [most * (order + 1) // episodes - most * order // episodes for order in range(episodes)]


def _frames(episode: Episode, share: int) -> Iterator[tuple[int, Picture]]:
    """So many, evenly: from the first to the last, since a finished step looks otherwise than one that begins."""
    if not share:
        return
    wanted = set(_spread(range(episode.frames), share))
    for number, picture in episode.film.pictures(stop=episode.frames):
        if number in wanted:
            yield number, picture


def _task_at(episode: Episode, number: int) -> str:
    step = next((step for step in episode.steps or () if number < step.end), None)
    return step.sentence if step is not None else episode.instruction


def _png(picture: Picture) -> bytes:
    url = picture_url(Image("calibration", picture), "png", max_side=1024)
    return base64.b64decode(url.partition(",")[2])


def _spread(values: Sequence[Any], most: int) -> list[Any]:
    if len(values) <= most:
        return list(values)
    if most == 1:
        return [values[len(values) // 2]]
    return [values[round(order * (len(values) - 1) / (most - 1))] for order in range(most)]
