"""A tiny data set in our folder format: an episode or two of each form, and one negative of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compass_edge.data.film_writer import FilmWriter
from compass_edge.data.folder import write_episode_json

FRAMES, FPS = 72, 10


def write_dataset(root: Path, episodes: int = 2, negatives: bool = True) -> Path:
    for task, form, k in (("S1", "state", 2), ("Q1", "sequence", 3), ("R1", "recurrence", 4)):
        for seed in range(episodes):
            write_episode(root, task, seed, [(at + 1) * (64 + 2 * seed) // k for at in range(k)], form=form)
    if negatives:
        write_episode(root, "E1", 0, [20, 40, 90], kind="early_stop", form="sequence")
        write_episode(root, "X1", 0, [15, 35], kind="extra_steps", form="recurrence")
        write_episode(root, "M1", 0, [], kind="mismatch", form="state")
    return root


def write_episode(root: Path, task: str, seed: int, ends: Sequence[int] | None, **more: Any) -> Path:
    """A square that wanders; what it shows does not matter to an oracle."""
    path = root / task / f"{seed}.json"
    with FilmWriter(path.with_suffix(".mp4"), FPS, 32, 32) as film:
        for frame in range(FRAMES):
            picture = np.full((32, 32, 3), 40 + 10 * seed, np.uint8)
            at = frame % 24
            picture[at : at + 8, at : at + 8] = (200, 60 + len(task), sum(map(ord, task)) % 200)
            film.add(picture)
    fields: dict[str, Any] = {
        "id": f"{task}/{seed}",
        "task": task,
        "instruction": f"Do what task {task} asks for, {len(ends or ())} times.",
        "video": f"{seed}.mp4",
        "fps": FPS,
        "frames": FRAMES,
        **more,
    }
    if ends is not None:
        form = more.get("form")
        fields["steps"] = [
            {
                "sentence": f"Do part {k} of task {task} with seed {seed}.",
                "end": end,
                "forms": [form] if form else [],
                "before": f"{k - 1} parts are done.",
                "tau": f"Part {k} is being done.",
                "after": f"{k} parts are done.",
                "completion": "lasting",
            }
            for k, end in enumerate(ends, 1)
        ]
    write_episode_json(path, fields)
    return path
