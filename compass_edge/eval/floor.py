"""Context floors: the error that no estimate from instruction and current frame can avoid (the paper's Definition 2).

Frames that show the same scene must get the same estimate, and the best one is the median of their progress. Scenes are given
as a key (what is there and visible) and coordinates (where it is); frames of one task and one instruction, of all its episodes,
fall into a cell when the key is the same and no coordinate is further than a tolerance from the cell's first frame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compass_edge.data.episode import FORMS, Episode, Form, Local
from compass_edge.errors import UsageError

Values = NDArray[np.float64]
Scene = tuple[Hashable, ArrayLike]

# The floor as a method: the best that any model can do that sees the instruction and the current frame.
FRAME_ALONE = "frame alone, at best"
# A task is context-dependent above this floor.
GATE = 4.0
# In the unit of the coordinates: with metres, 12 mm, less than a camera at a table can tell apart.
TOLERANCE = 0.012


@dataclass(frozen=True, slots=True)
class TaskFloor:
    task: str
    deltas: Mapping[Form, float]  # delta_S, delta_Q, delta_R: 0 to 100, over all frames of the task
    frames: int
    dependent: float  # share of frames that are labelled, 0 to 1
    best: float  # error of the best estimate from the current frame: the floors, and what is left in unlabelled cells
    cells: int

    @property
    def floor(self) -> float:
        return sum(self.deltas.values())

    @property
    def above_gate(self) -> bool:
        return self.floor > GATE


@dataclass(frozen=True, slots=True)
class Floors:
    tasks: Mapping[str, TaskFloor]
    best_frame_estimate: tuple[Values, ...]  # for each episode: the median of each frame's cell
    cells: tuple[NDArray[np.int64], ...]  # for each episode: the cell of each frame

    @property
    def above_gate(self) -> tuple[str, ...]:
        return tuple(task for task, floor in self.tasks.items() if floor.above_gate)


def floors(
    episodes: Sequence[Episode],
    scenes: Sequence[Sequence[Scene]],
    *,
    tolerance: float = TOLERANCE,
    by: Local = "time",
) -> Floors:
    """`scenes[i]` has a scene for each frame of `episodes[i]`."""
    cells = _cells(episodes, scenes, tolerance)
    truth = [episode.progress(by) for episode in episodes]
    best: list[Values] = [np.zeros(episode.frames) for episode in episodes]
    by_task: defaultdict[str, list[int]] = defaultdict(list)
    for index, episode in enumerate(episodes):
        by_task[episode.task].append(index)
    tasks: dict[str, TaskFloor] = {}
    for task, members in by_task.items():
        cell = np.concatenate([cells[index] for index in members])
        progress = np.concatenate([truth[index] for index in members])
        active = np.concatenate([episodes[index].active() for index in members])
        label = np.concatenate([_labels(episodes[index]) for index in members])
        estimate, dependent = _medians(cell, progress, active)
        off = np.abs(progress - estimate)
        # m(o) is the mean of these over a cell; summed over frames it makes no difference which of the two is summed, but
        # a cell's frames may have different labels, and each then has the cell's m.
        share = _means(cell, off)
        deltas = {
            form: float((share * (dependent & (label == place))).sum() / cell.size) for place, form in enumerate(FORMS)
        }
        labelled = float((dependent & (label >= 0)).mean())
        tasks[task] = TaskFloor(task, deltas, cell.size, labelled, float(off.mean()), np.unique(cell).size)
        edges = np.cumsum([episodes[index].frames for index in members])[:-1]
        for index, part in zip(members, np.split(estimate, edges), strict=True):
            best[index] = part
    return Floors(tasks, tuple(best), tuple(cells))


def partition(vectors: ArrayLike, tolerance: float) -> NDArray[np.int64]:
    """Greedy: the first row founds a cell and takes all within the tolerance in every coordinate; the first left founds the next."""
    rows = np.asarray(vectors, np.float64)
    cell = np.full(len(rows), -1, np.int64)
    left, found = np.arange(len(rows)), 0
    while left.size:
        near = (np.abs(rows[left] - rows[left[0]]) <= tolerance).all(axis=1)
        near[0] = True  # even a row that is not equal to itself
        cell[left[near]] = found
        left, found = left[~near], found + 1
    return cell


def _cells(episodes: Sequence[Episode], scenes: Sequence[Sequence[Scene]], tolerance: float) -> list[NDArray[np.int64]]:
    if len(scenes) != len(episodes):
        raise UsageError(f"There must be scenes for each of {len(episodes)} episodes, and {len(scenes)} came.")
    alike: defaultdict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for index, (episode, frames) in enumerate(zip(episodes, scenes, strict=True)):
        if len(frames) != episode.frames:
            raise UsageError(
                f"Episode '{episode.id}' must have a scene for each of its {episode.frames} frames, and {len(frames)} came."
            )
        for frame, (key, _) in enumerate(frames):
            alike[episode.task, episode.instruction, key].append((index, frame))
    cells = [np.zeros(episode.frames, np.int64) for episode in episodes]
    founded = 0
    for places in alike.values():
        rows = [np.atleast_1d(np.asarray(scenes[index][frame][1], np.float64)) for index, frame in places]
        if len({row.shape for row in rows}) > 1:
            raise UsageError(
                f"Scenes with one key must have as many coordinates as each other, and those of task "
                f"'{episodes[places[0][0]].task}' have {sorted({row.size for row in rows})}."
            )
        of = partition(np.stack(rows), tolerance)
        for (index, frame), cell in zip(places, of.tolist(), strict=True):
            cells[index][frame] = founded + cell
        founded += int(of.max()) + 1
    return cells


def _labels(episode: Episode) -> NDArray[np.int64]:
    """For each frame the place in FORMS of the main form of its step; -1 where there is none."""
    main = [step.forms[0] if step.forms else episode.form for step in episode.truth] + [episode.form]
    places = np.array([FORMS.index(form) if form is not None else -1 for form in main], np.int64)
    return places[episode.active() - 1]


def _medians(cell: NDArray[np.int64], progress: Values, active: NDArray[np.int64]) -> tuple[Values, NDArray[np.bool_]]:
    """For each frame: the median progress of its cell, and whether the cell holds different active positions."""
    order = np.lexsort((progress, cell))
    _, starts, sizes = np.unique(cell[order], return_index=True, return_counts=True)
    ordered = progress[order]
    medians = (ordered[starts + (sizes - 1) // 2] + ordered[starts + sizes // 2]) / 2
    differs = np.maximum.reduceat(active[order], starts) != np.minimum.reduceat(active[order], starts)
    estimate, dependent = np.empty(cell.size), np.empty(cell.size, np.bool_)
    estimate[order], dependent[order] = np.repeat(medians, sizes), np.repeat(differs, sizes)
    return estimate, dependent


def _means(cell: NDArray[np.int64], values: Values) -> Values:
    """For each frame: the mean over its cell."""
    _, of, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    return np.asarray((np.bincount(of.reshape(-1), values) / sizes)[of.reshape(-1)], np.float64)
