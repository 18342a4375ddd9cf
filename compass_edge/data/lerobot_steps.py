"""The steps of a LeRobot episode, in any of the three ways that LeRobot has written them.

Language rows: `language_persistent` has rows of style subtask, each active from its timestamp on. A column of the frames:
`subtask_index` into meta/subtasks.parquet. SARM: columns of the episode, `dense_subtask_names` and
`dense_subtask_end_frames`, or `sparse_...`, or without a prefix. The first that is there counts.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from compass_edge.data.episode import StepTruth
from compass_edge.data.parquet import Table, number, whole
from compass_edge.data.step_texts import steps_of
from compass_edge.errors import IntegrityError

_PREFIXES = ("dense_", "sparse_", "")
EPISODE_COLUMNS = [f"{prefix}subtask_{name}" for prefix in _PREFIXES for name in ("names", "end_frames")]

Spans = list[tuple[str, int]]


class LerobotSteps:
    def __init__(self, root: Path, fps: float) -> None:
        self._root, self._fps = root, fps
        self._names: dict[int, str] | None = None

    def of(self, episode: dict[str, Any], data: Path | None, frames: int, where: str) -> tuple[StepTruth, ...] | None:
        spans: Spans | None = None
        if data is not None and data.is_file():
            table = Table(data)
            if "language_persistent" in table.columns:
                spans = self._from_language(table, episode, frames)
            if not spans and "subtask_index" in table.columns:
                spans = self._from_frames(table, episode, frames)
        spans = spans or _from_sarm(episode, where)
        return steps_of(spans, frames, where) if spans else None

    def _from_language(self, table: Table, episode: dict[str, Any], frames: int) -> Spans:
        rows = _rows_of(table, episode, "language_persistent")
        where = f"'{table.path}': episode {episode['episode_index']}: language_persistent"
        told = rows[0]["language_persistent"] if rows else None
        begins = sorted(
            (round(number(row, "timestamp", where) * self._fps), row["content"])
            for row in told or []
            if row.get("style") == "subtask" and row.get("content")
        )
        ends = [begin for begin, _ in begins[1:]]
        return [(text, end) for (_, text), end in zip(begins, [*ends, frames], strict=False)]

    def _from_frames(self, table: Table, episode: dict[str, Any], frames: int) -> Spans:
        where = f"'{table.path}': episode {episode['episode_index']}"
        indices = [row["subtask_index"] for row in _rows_of(table, episode, "subtask_index")]
        if len(indices) != frames:
            raise IntegrityError(f"{where} should have {frames} rows, and has {len(indices)}.")
        spans, end = [], 0
        for index, run in groupby(indices):
            end += len(list(run))
            if index is not None and index >= 0:  # frames of no subtask count to the next one
                spans.append((self._name(index, where), end))
        return spans

    def _name(self, index: int, where: str) -> str:
        if self._names is None:
            table = Table(self._root / "meta" / "subtasks.parquet")
            # pandas keeps an index that has no name under this one.
            text = next((name for name in ("subtask", "__index_level_0__") if name in table.columns), "subtask")
            self._names = {
                whole(row, "subtask_index", f"'{table.path}'"): str(row[text])
                for row in table.rows([text, "subtask_index"])
            }
        if index not in self._names:
            raise IntegrityError(f"{where}: subtask_index {index} is not in meta/subtasks.parquet.")
        return self._names[index]


def _rows_of(table: Table, episode: dict[str, Any], column: str) -> list[dict[str, Any]]:
    mine = [("episode_index", "=", int(episode["episode_index"]))]
    rows = table.rows(["episode_index", column], ["frame_index"], mine)
    return sorted(rows, key=lambda row: row.get("frame_index") or 0)


def _from_sarm(episode: dict[str, Any], where: str) -> Spans | None:
    for prefix in _PREFIXES:
        names, ends = (episode.get(f"{prefix}subtask_{name}") for name in ("names", "end_frames"))
        if names and ends:
            if len(names) != len(ends):
                raise IntegrityError(
                    f"{where}: {prefix}subtask_names has {len(names)} entries and {prefix}subtask_end_frames {len(ends)}."
                )
            return [(str(name), whole({"end": end}, "end", where)) for name, end in zip(names, ends, strict=True)]
    return None
