"""LeRobotDataset v3: tables in parquet, and mp4 files that hold several episodes each.

meta/info.json, meta/tasks.parquet, meta/episodes/chunk-*/file-*.parquet, data/chunk-*/file-*.parquet,
videos/{camera}/chunk-*/file-*.mp4. An episode is the stretch from_timestamp to to_timestamp of its video file. Where it
may have steps, compass_edge.data.lerobot_steps looks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compass_edge.data.episode import Episode
from compass_edge.data.fields import Fields, read_json
from compass_edge.data.lerobot_steps import EPISODE_COLUMNS, LerobotSteps
from compass_edge.data.parquet import Table, number, whole
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import IntegrityError, UsageError

_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


class LerobotDataset:
    """`camera` is a key such as observation.images.top, or its end; by default the first video of info.json."""

    format = "lerobot"

    def __init__(self, root: Path | str, camera: str | None = None) -> None:
        self.root = Path(root)
        self.name = f"lerobot/{self.root.resolve().name}"
        info = Fields(read_json(self.root / "meta" / "info.json"), f"'{self.root / 'meta' / 'info.json'}'")
        version = info.text("codebase_version")
        if not version.startswith("v3."):
            raise IntegrityError(
                f"{info.where}: codebase_version must be v3.0, and {version!r} came. LeRobot converts older data sets: "
                "`python -m lerobot.scripts.convert_dataset_v21_to_v30`."
            )
        self.fps: float = info.number("fps", above=0)
        self.cameras = _cameras(info)
        self.camera = _chosen(camera, self.cameras, info.where)
        self._data_path = info.text("data_path", _DATA)
        self._video_path = info.text("video_path", _VIDEO)
        self._where = info.where
        self._tables = [Table(path) for path in sorted((self.root / "meta" / "episodes").glob("*/*.parquet"))]
        if not self._tables:
            raise IntegrityError(f"'{self.root}': meta/episodes/chunk-000/file-000.parquet is missing.")
        self._count = sum(len(table.rows(["episode_index"])) for table in self._tables)

    def __len__(self) -> int:
        return self._count

    def episodes(self) -> Iterator[Episode]:
        video = [f"videos/{self.camera}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]
        until = f"videos/{self.camera}/to_timestamp"
        data = ["data/chunk_index", "data/file_index"]
        steps = LerobotSteps(self.root, self.fps)
        for table in self._tables:
            needed = ["episode_index", "length", *video]
            for row in table.rows(needed, ["tasks", until, *data, *EPISODE_COLUMNS]):
                yield self._episode(row, f"'{table.path}': episode {row['episode_index']}", steps)

    def _episode(self, row: dict[str, Any], where: str, steps: LerobotSteps) -> Episode:
        index, length = whole(row, "episode_index", where), whole(row, "length", where, 1)
        key = f"videos/{self.camera}"
        start = number(row, f"{key}/from_timestamp", where)
        if row.get(f"{key}/to_timestamp") is not None:
            lasts = number(row, f"{key}/to_timestamp", where) - start
            if abs(lasts * self.fps - length) > 1:
                raise IntegrityError(
                    f"{where}: its video lasts {lasts:g} s, which is {lasts * self.fps:.1f} frames at {self.fps:g} fps, and "
                    f"its length is {length} frames."
                )
        path = self._file(
            self._video_path,
            where,
            video_key=self.camera,
            chunk_index=whole(row, f"{key}/chunk_index", where),
            file_index=whole(row, f"{key}/file_index", where),
        )
        tasks = [task for task in row.get("tasks") or [] if isinstance(task, str)]
        data = None
        if row.get("data/chunk_index") is not None and row.get("data/file_index") is not None:
            chunk, file = whole(row, "data/chunk_index", where), whole(row, "data/file_index", where)
            data = self._file(self._data_path, where, chunk_index=chunk, file_index=file)
        film = VideoFilm(path, start_s=start, frames=length)
        if film.about.frames and round(start * self.fps) + length > film.about.frames:
            raise IntegrityError(
                f"{where}: its {length} frames begin at frame {round(start * self.fps)} of '{path}', which has "
                f"{film.about.frames} frames."
            )
        return Episode(
            id=f"{self.name}/{index}",
            task=tasks[0] if tasks else self.name,
            instruction=tasks[0] if tasks else "",
            film=film,
            frames=length,
            fps=self.fps,
            steps=steps.of(row, data, length, where),
        )

    def _file(self, template: str, where: str, **values: Any) -> Path:
        try:
            path = (self.root / template.format(**values)).resolve()
        except (LookupError, ValueError, AttributeError) as error:
            raise IntegrityError(f"{self._where}: the path {template!r} cannot be filled in ({error}).") from error
        if not path.is_relative_to(self.root.resolve()):
            raise IntegrityError(f"{where}: '{path}' is outside the data set.")
        return path


def _cameras(info: Fields) -> list[str]:
    features = info.mapping("features")
    kinds = {key: value.get("dtype") for key, value in features.items() if isinstance(value, dict)}
    cameras = [key for key, kind in kinds.items() if kind == "video"]
    if not cameras and "image" in kinds.values():
        raise IntegrityError(
            f"{info.where}: its pictures are inside the tables (dtype image), and videos are expected. LeRobot converts them: "
            "`lerobot-edit-dataset --operation.type convert_image_to_video`."
        )
    if not cameras:
        raise IntegrityError(f"{info.where}: features must have one of dtype video, and has {', '.join(features)}.")
    return cameras


def _chosen(camera: str | None, cameras: list[str], where: str) -> str:
    if camera is None:
        return cameras[0]
    found = [key for key in cameras if key == camera or key.endswith(f".{camera}")]
    if len(found) != 1:
        raise UsageError(f"{where}: there is no camera '{camera}'. There are: {', '.join(cameras)}.")
    return found[0]
