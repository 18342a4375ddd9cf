"""Our own format: NAME.mp4 and NAME.json, anywhere below a root folder. compass_edge/data/README.md describes it.

write_episode_json("set/R1/3.json", {"id": "R1/3", "task": "R1", ..., "steps": [{"sentence": ..., "end": 41}]})
episode = read_episode("set/R1/3.json")
for episode in FolderDataset("set").episodes(): ...
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from compass_edge.data.episode import FORMS, Episode, StepTruth
from compass_edge.data.fields import Fields, read_json
from compass_edge.data.part import part_of
from compass_edge.data.video_film import Crop, VideoFilm
from compass_edge.errors import IntegrityError, UsageError

FORMAT = "compass-edge-episode/1"
KINDS = ("positive", "early_stop", "extra_steps", "mismatch")
COMPLETIONS = ("lasting", "brief", "observation")

_KEYS = (
    "format",
    "id",
    "task",
    "instruction",
    "video",
    "crop",
    "fps",
    "frames",
    "form",
    "kind",
    "steps",
    "tracks",
    "about",
)
_STEP_KEYS = ("sentence", "end", "forms", "before", "tau", "after", "completion", "facts")


def write_episode_json(path: Path | str, episode: Episode | Mapping[str, Any]) -> None:
    """Writes NAME.json, whole or not at all. Fields are checked as they are when the file is read; arrays become lists."""
    path = Path(path)
    fields = _fields_of(episode, path) if isinstance(episode, Episode) else dict(episode)
    fields = {"format": FORMAT, **fields}
    try:
        text = json.dumps(fields, default=_plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        _parse(json.loads(text), path)
    except (TypeError, ValueError, IntegrityError) as error:
        raise UsageError(f"This episode cannot be written: {error}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = part_of(path)
    with partial.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_episode(path: Path | str, root: Path | str | None = None) -> Episode:
    """`root`: the folder that its video must be in; by default the one that the JSON is in."""
    path = Path(path)
    values = _parse(read_json(path), path)
    film = VideoFilm(_video_path(path, values.pop("video"), root), values.pop("crop"))
    try:
        return Episode(film=film, **values)
    except UsageError as error:
        raise IntegrityError(f"'{path}': {error}") from error


class FolderDataset:
    """Every episode below `root`, by the names of its files, or the one of a file. JSON of other kinds is left alone."""

    format = "folder"

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.name = self.root.resolve().name
        if self.root.is_file():
            self._paths = [self.root.with_suffix(".json")]
            self.root = self.root.parent
        else:
            self._paths = [path for path in sorted(self.root.rglob("*.json")) if is_episode(path)]

    def __len__(self) -> int:
        return len(self._paths)

    def episodes(self) -> Iterator[Episode]:
        seen: dict[str, Path] = {}
        for path in self._paths:
            episode = read_episode(path, self.root)
            if episode.id in seen:
                raise IntegrityError(
                    f"'{seen[episode.id]}' and '{path}' both call themselves '{episode.id}': an id must be unique in its "
                    "data set."
                )
            seen[episode.id] = path
            yield episode


def is_episode(path: Path) -> bool:
    """By what the file says of itself, or because a film of its name is beside it. A look at the bytes, not a parse."""
    if path.name.startswith(".") or not path.is_file():
        return False
    return b'"compass-edge-episode/' in path.read_bytes() or path.with_suffix(".mp4").is_file()


def _video_path(path: Path, video: str | None, root: Path | str | None) -> Path:
    if video is None:
        return path.with_suffix(".mp4")
    inside = (path.parent if root is None else Path(root)).resolve()
    found = (path.parent / PurePosixPath(video)).resolve()
    if not found.is_relative_to(inside):
        raise IntegrityError(f"'{path}': video must name a file inside '{inside}', and {video!r} leaves it.")
    return found


def _fields_of(episode: Episode, path: Path) -> dict[str, Any]:
    film = episode.film
    if not isinstance(film, VideoFilm) or film.start_s:
        raise UsageError(
            f"Episode '{episode.id}' is not a video file of its own: write its pictures with FilmWriter first, and name the "
            "file in the fields."
        )
    names = ("id", "task", "instruction", "fps", "frames", "form", "kind")
    fields = {name: getattr(episode, name) for name in names}
    fields["video"] = Path(os.path.relpath(film.path.resolve(), path.parent.resolve())).as_posix()
    if film.crop is not None:
        fields["crop"] = list(film.crop)
    # A step's facts may be any mapping, which asdict copies as it is.
    fields["steps"] = None if episode.steps is None else [asdict(step) for step in episode.steps]
    return {**fields, "tracks": dict(episode.tracks)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON.")


def _parse(raw: Any, path: Path) -> dict[str, Any]:
    """The fields of Episode, `video` and `crop`."""
    fields = Fields(raw, f"'{path}'")
    fields.only(_KEYS)
    if fields.text("format") != FORMAT:
        raise IntegrityError(f"'{path}': format must be '{FORMAT}', and {raw['format']!r} came.")
    frames = fields.whole("frames", least=1)
    values: dict[str, Any] = {
        "id": fields.text("id", filled=True),
        "task": fields.text("task"),
        "instruction": fields.text("instruction"),
        "frames": frames,
        "fps": fields.number("fps", above=0),
        "form": fields.choice("form", FORMS, None),
        "kind": fields.choice("kind", KINDS, "positive"),
        "video": fields.text("video", default=None),
        "crop": _crop(fields),
        "steps": None,
        "tracks": fields.mapping("tracks", {}),
    }
    if raw.get("steps") is not None:
        values["steps"] = tuple(_step(step) for step in fields.objects("steps"))
    for name, track in values["tracks"].items():
        if isinstance(track, list) and len(track) < frames:
            raise IntegrityError(
                f"'{path}': the track '{name}' must have a value for each of {frames} frames, and {len(track)} came."
            )
    return values


def _step(fields: Fields) -> StepTruth:
    fields.only(_STEP_KEYS)
    forms = fields.items("forms", [])
    for form in forms:
        if form not in FORMS:
            raise IntegrityError(f"{fields.where}: forms must be among {', '.join(FORMS)}, and {form!r} came.")
    return StepTruth(
        sentence=fields.text("sentence"),
        end=fields.whole("end", least=1),
        forms=tuple(forms),
        before=fields.text("before", ""),
        tau=fields.text("tau", ""),
        after=fields.text("after", ""),
        completion=fields.choice("completion", COMPLETIONS, "lasting"),
        facts=fields.mapping("facts", {}),
    )


def _crop(fields: Fields) -> Crop | None:
    crop = fields.items("crop", None)
    if crop is None:
        return None
    if len(crop) != 4 or not all(type(value) is int for value in crop) or min(crop[:2]) < 0 or min(crop[2:]) < 1:
        raise IntegrityError(f"{fields.where}: crop must be [left, top, width, height] in pixels, and {crop} came.")
    left, top, width, height = crop
    return left, top, width, height
