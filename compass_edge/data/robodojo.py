"""RoboDojo (RoboDojo-Benchmark/RoboDojo): XPolicyLab's trajectory format v1.0, one HDF5 file an episode.

{task}/{robot}/data/episode_0000000.hdf5 with `instruction` (or `instructions`, a JSON list), `additional_info/frequency`,
`vision/{camera}/colors` and, where somebody has written them, `subtasks`. How subtasks are laid out is not published: pairs
of a text and a number of frames, and objects with a text and the frame it ends at, are read; anything else is taken as no
annotation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compass_edge.data.array_film import ArrayFilm
from compass_edge.data.episode import Episode, StepTruth
from compass_edge.data.hdf5 import group_at, json_at, open_hdf5, scalar_at, text_at
from compass_edge.data.step_texts import steps_of
from compass_edge.errors import IntegrityError

FPS = 25.0  # of a file that does not say
_TEXTS = ("subtask", "instruction", "text", "description", "name")
_ENDS = ("end", "end_frame", "end_idx", "end_frame_id", "end_frame_index")


class RobodojoDataset:
    """Every HDF5 file below `root`, or one file. `swapped`: its JPEGs have red and blue the other way round."""

    format = "robodojo"

    def __init__(self, root: Path | str, camera: str | None = None, *, swapped: bool = False) -> None:
        self.root, self.camera, self.swapped = Path(root), camera, swapped
        self.name = f"robodojo/{self.root.resolve().name}"
        self._paths = [self.root] if self.root.is_file() else sorted(self.root.rglob("*.hdf5"))

    def __len__(self) -> int:
        return len(self._paths)

    def episodes(self) -> Iterator[Episode]:
        for path in self._paths:
            yield self._episode(path)

    def _episode(self, path: Path) -> Episode:
        with open_hdf5(path) as file:
            cameras = sorted(group_at(file, "vision", path))
            camera = self.camera or ("cam_head" if "cam_head" in cameras else next(iter(cameras), "cam_head"))
            group_at(file, f"vision/{camera}", path)
            instruction = _instruction(file, path)
            fps = float(_number(file, "additional_info/frequency", path, FPS))
            told = json_at(file, "subtasks", path) if "subtasks" in file else None
        film = ArrayFilm(path, f"vision/{camera}/colors", fps=fps, swapped=self.swapped)
        task = _task(path)
        return Episode(
            id=f"robodojo/{task}/{path.stem}",
            task=f"robodojo/{task}",
            instruction=instruction or task.replace("_", " "),
            film=film,
            frames=film.frames,
            fps=fps,
            steps=_steps(told, film.frames, f"'{path}': subtasks"),
        )


def _instruction(file: Any, path: Path) -> str:
    if "instruction" in file:
        return text_at(file, "instruction", path)
    if "instructions" not in file:
        return ""
    texts = json_at(file, "instructions", path)
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
        raise IntegrityError(f"'{path}': the key 'instructions' should be a JSON list of texts, and {texts!r} came.")
    return texts[0] if texts else ""


def _number(file: Any, key: str, path: Path, default: float) -> float:
    if key not in file:
        return default
    value = scalar_at(file, key, path, "a number above 0")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise IntegrityError(f"'{path}': the key '{key}' should be a number above 0, and {value!r} came.")
    return value


def _task(path: Path) -> str:
    """{task}/{robot}/data/episode.hdf5, or whatever folder it lies in."""
    folder = path.resolve().parent
    return folder.parents[1].name if folder.name == "data" and len(folder.parents) > 2 else folder.name


def _steps(told: Any, frames: int, where: str) -> tuple[StepTruth, ...] | None:
    if not isinstance(told, list) or not told:
        return None
    spans, end = [], 0
    for entry in told:
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and type(entry[1]) is int:
            end += entry[1]
            spans.append((entry[0], end))
        elif isinstance(entry, dict):
            text = next((entry[key] for key in _TEXTS if isinstance(entry.get(key), str)), None)
            end_at = next((entry[key] for key in _ENDS if type(entry.get(key)) is int), None)
            if text is None or end_at is None:
                return None
            spans.append((text, end_at))
        else:
            return None
    return steps_of(spans, frames, where)
