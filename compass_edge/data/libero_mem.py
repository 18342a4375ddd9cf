"""LIBERO-Mem: {TASK}_demo.hdf5 with data/demo_{k}/obs/agentview_rgb at 20 Hz, and metainfo.json with the subgoals.

In metainfo.json every frame of a demonstration has the objects that are seen; the entry `robot` ends with the latest subgoal
that was satisfied, "0" before the first and then such as "two: bowl 1 on plate 1". Where it changes, a step is complete.
The robot stands still for the last 20 actions, which are zeros: the track `idle` marks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compass_edge.data.array_film import ArrayFilm
from compass_edge.data.episode import Episode, StepTruth
from compass_edge.data.fields import Fields, read_json
from compass_edge.data.hdf5 import DAMAGE, damaged, dataset_at, group_at, open_hdf5
from compass_edge.data.step_texts import steps_of
from compass_edge.errors import IntegrityError

FPS = 20.0
_ZERO = 1e-6


class LiberoMemDataset:
    """Every demonstration of every file below `root`, or of one file.

    The refined files are upright; `flip` turns pictures that are upside down, as robosuite renders them.
    """

    format = "libero_mem"

    def __init__(self, root: Path | str, camera: str | None = None, *, flip: bool = False) -> None:
        self.root, self.camera, self.flip = Path(root), camera or "agentview_rgb", flip
        self.name = f"libero_mem/{self.root.resolve().name}"
        paths = [self.root] if self.root.is_file() else sorted(self.root.rglob("*.hdf5"), key=_in_numbers)
        self._demos = [(path, demo) for path in paths for demo in _demos(path)]
        self._metainfo: tuple[Path | None, Any] = (None, None)

    def __len__(self) -> int:
        return len(self._demos)

    def episodes(self) -> Iterator[Episode]:
        for path, demo in self._demos:
            yield self._episode(path, demo)

    def _episode(self, path: Path, demo: str) -> Episode:
        task = re.sub(r"_demo(_\d+)?$", "", path.stem)
        film = ArrayFilm(path, f"data/{demo}/obs/{self.camera}", fps=FPS, flip=self.flip)
        told = self._told(path, task, demo)
        instruction = re.sub(r"^[A-Z0-9_]+_", "", task).replace("_", " ")
        return Episode(
            id=f"libero_mem/{task}/{demo}",
            task=f"libero_mem/{task}",
            instruction=instruction if told is None else told.text("task_description", instruction).strip(),
            film=film,
            frames=film.frames,
            fps=FPS,
            steps=None if told is None else subgoal_steps(told, film.frames),
            tracks={"idle": _idle(path, demo, film.frames)},
        )

    def _told(self, path: Path, task: str, demo: str) -> Fields | None:
        """The demonstration's part of the metainfo that lies beside: one file a demonstration, or one for all."""
        suite = sorted(path.parent.glob("*_metainfo.json"))
        names = [path.parent / f"{path.stem}_metainfo.json", path.parent / "metainfo.json", *suite]
        found = next((name for name in names if name.is_file()), None)
        if found is None:
            return None
        if found != self._metainfo[0]:  # it is large: the one in use is kept
            self._metainfo = (found, read_json(found))
        tasks = Fields(self._metainfo[1], f"'{found}'")
        demos = Fields(tasks.mapping(task, {}), f"'{found}': {task}")
        told = demos.mapping(demo, None)
        return None if told is None else Fields(told, f"'{found}': {task}: {demo}")


def subgoal_steps(told: Fields, frames: int) -> tuple[StepTruth, ...] | None:
    """None where no subgoal was ever written down."""
    exo, ego = told.items("exo_boxes"), told.items("ego_boxes", [])
    if len(exo) != frames:
        raise IntegrityError(
            f"{told.where}: exo_boxes must have an entry for each of {frames} frames, and has {len(exo)}."
        )
    spans, current = [], "0"
    for number, objects in enumerate(exo):
        tag = _tag(objects, f"{told.where}: exo_boxes[{number}]")
        if tag is None and number < len(ego):  # out of the first camera's sight
            tag = _tag(ego[number], f"{told.where}: ego_boxes[{number}]")
        if tag is not None and tag not in ("0", current):
            current = tag
            spans.append((tag.partition(":")[2].strip() or tag, number))
    return steps_of(spans, frames, f"{told.where}: exo_boxes") if spans else None


def _tag(objects: Any, where: str) -> str | None:
    if not isinstance(objects, dict):
        raise IntegrityError(f"{where} must be a JSON object of the objects that are seen, and {objects!r} came.")
    robot = objects.get("robot")
    if robot is None:
        return None
    if not isinstance(robot, list) or len(robot) != 3 or not isinstance(robot[2], str | int):
        raise IntegrityError(f"{where}: robot must be [number, box, subgoal], and {robot!r} came.")
    return str(robot[2])


def _idle(path: Path, demo: str, frames: int) -> list[bool]:
    key = f"data/{demo}/actions"
    with open_hdf5(path) as file:
        rows = dataset_at(file, key, path, f"({frames}, 7) numbers")
        try:
            actions = np.asarray(rows[()], np.float64)
        except DAMAGE as error:
            raise damaged(path, key, error) from error
    if actions.ndim != 2 or actions.shape[0] != frames or actions.shape[1] < 6:
        raise IntegrityError(
            f"'{path}': the key '{key}' should have 7 numbers for each of {frames} frames, and the shape {actions.shape} came."
        )
    moving = np.flatnonzero((np.abs(actions[:, :6]) > _ZERO).any(axis=1))
    last = int(moving[-1]) if len(moving) else -1
    return [frame > last for frame in range(frames)]


def _demos(path: Path) -> list[str]:
    with open_hdf5(path) as file:
        names = [str(name) for name in group_at(file, "data", path)]
    return sorted((name for name in names if name.startswith("demo_")), key=_in_numbers)


def _in_numbers(name: str | Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(name))]
