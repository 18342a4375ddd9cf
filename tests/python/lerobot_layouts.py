"""A small LeRobotDataset v3, as LeRobot lays it out: two cameras, several episodes in one video file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from film_samples import shoot

CAMERA = "observation.images.top"
FPS = 30


def write_lerobot(root: Path, lengths: list[int], **options: Any) -> Path:
    """`columns` of the frames, `episode_columns`, `subtasks`, `info`: what goes beyond the least there is."""
    total = sum(lengths)
    info: dict[str, Any] = {
        "codebase_version": "v3.0",
        "fps": FPS,
        "total_episodes": len(lengths),
        "total_frames": total,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": {
            "action": {"dtype": "float32", "shape": [2]},
            CAMERA: {"dtype": "video", "shape": [96, 160, 3]},
            "observation.images.wrist": {"dtype": "video", "shape": [96, 160, 3]},
        },
    }
    (root / "meta").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps({**info, **options.get("info", {})}))
    for camera, first in ((CAMERA, 0), ("observation.images.wrist", 1000)):
        shoot(root / "videos" / camera / "chunk-000" / "file-000.mp4", total, FPS, first)
    begins = [sum(lengths[:place]) for place in range(len(lengths))]
    rows = []
    for place, (begin, length) in enumerate(zip(begins, lengths, strict=True)):
        row: dict[str, Any] = {
            "episode_index": place,
            "tasks": ["put the cube into the box" if place % 2 == 0 else "open the box"],
            "length": length,
            "data/chunk_index": 0,
            "data/file_index": 0,
            "dataset_from_index": begin,
            "dataset_to_index": begin + length,
        }
        for camera in (CAMERA, "observation.images.wrist"):
            times = {"from_timestamp": begin / FPS, "to_timestamp": (begin + length) / FPS}
            row |= {f"videos/{camera}/{key}": value for key, value in times.items()}
            row |= {f"videos/{camera}/{key}": 0 for key in ("chunk_index", "file_index")}
        row |= {key: values[place] for key, values in options.get("episode_columns", {}).items()}
        rows.append(row)
    write_table(root / "meta" / "episodes" / "chunk-000" / "file-000.parquet", rows)
    frames = [
        {"episode_index": place, "frame_index": number, "timestamp": number / FPS, "task_index": place % 2}
        for place, length in enumerate(lengths)
        for number in range(length)
    ]
    for key, values in options.get("columns", {}).items():
        for frame, value in zip(frames, values, strict=True):
            frame[key] = value
    write_table(root / "data" / "chunk-000" / "file-000.parquet", frames)
    write_table(root / "meta" / "tasks.parquet", [{"task_index": 0, "task": "put the cube into the box"}])
    if "subtasks" in options:
        names = [{"subtask": name, "subtask_index": place} for place, name in enumerate(options["subtasks"])]
        write_table(root / "meta" / "subtasks.parquet", names)
    return root


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
