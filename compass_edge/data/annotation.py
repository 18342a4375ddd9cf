"""An annotation in the making: the JSON of a video, saved whole after every change."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from compass_edge.data.fields import Fields, read_json
from compass_edge.data.folder import FORMAT, read_episode, write_episode_json
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import UsageError

EDITABLE = ("instruction", "task", "steps")


class Annotation:
    """Goes on where the JSON stops, if there is one. What it says beyond steps and texts stays as it is.

    `out` is the JSON, or a folder for it; by default NAME.json beside the video.
    """

    def __init__(self, path: Path | str, out: Path | str | None = None, task: str | None = None) -> None:
        path = Path(path)
        self.out = _json_path(path, out)
        self._lock = threading.Lock()
        self.saves = 0
        if self.out.is_file():
            episode = read_episode(self.out, _root(self.out, path))
            if not isinstance(episode.film, VideoFilm):
                raise UsageError(f"'{self.out}' has no video file.")
            self.film, self.resumed = episode.film, True
            self.fields: dict[str, Any] = Fields(read_json(self.out), f"'{self.out}'").raw
        else:
            self.film, self.resumed = VideoFilm(path), False
            self.fields = {
                "format": FORMAT,
                "id": self.out.stem,
                "task": self.out.stem,
                "instruction": "",
                "video": Path(os.path.relpath(path.resolve(), self.out.resolve().parent)).as_posix(),
                "fps": self.film.fps,
                "frames": self.film.frames,
                "steps": None,
            }
        if task is not None:
            self.fields["instruction"] = task

    @property
    def steps(self) -> int:
        return len(self.fields.get("steps") or ())

    @property
    def unnamed(self) -> int:
        """Steps that have no sentence yet."""
        return sum(not step.get("sentence", "").strip() for step in self.fields.get("steps") or ())

    def edit(self, change: Any) -> None:
        """Takes over instruction, task and steps, and saves. Refuses what could not be read again."""
        fields = Fields(change, "The annotation")
        fields.only(EDITABLE)
        with self._lock:
            changed = {**self.fields, **fields.raw}
            write_episode_json(self.out, changed)
            self.fields = changed
            self.saves += 1


def _json_path(path: Path, out: Path | str | None) -> Path:
    if not path.is_file():
        raise UsageError(f"There is no file '{path}': name the video that is to be annotated.")
    if out is None:
        return path.with_suffix(".json")
    out = Path(out)
    if out.is_dir():
        return out / f"{path.stem}.json"
    if out.suffix != ".json":
        raise UsageError(f"--out must be a folder or end in .json, and '{out}' came.")
    return out


def _root(out: Path, video: Path) -> Path:
    return Path(os.path.commonpath([out.resolve().parent, video.resolve().parent]))
