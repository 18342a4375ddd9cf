"""RoboDojo: JPEGs or raw pictures, instructions and subtasks in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from film_samples import SIZE, all_ticks, numbers_shown
from hdf5_layouts import write_robodojo

from compass_edge.data.robodojo import RobodojoDataset
from compass_edge.errors import IntegrityError
from compass_edge.frames.clip import clip_frame


def one(path: Path, **options: Any) -> Any:
    (episode,) = RobodojoDataset(path, **options).episodes()
    return episode


@pytest.mark.parametrize("raw", [False, True])
def test_an_episode(tmp_path: Path, raw: bool) -> None:
    root = tmp_path / "RoboDojo"
    path = write_robodojo(
        root / "cover_blocks" / "arx_x5" / "data" / "episode_0000000.hdf5", 12, raw=raw, instruction="Cover."
    )
    episode = one(root)
    assert (episode.id, episode.task) == ("robodojo/cover_blocks/episode_0000000", "robodojo/cover_blocks")
    assert (episode.instruction, episode.fps, episode.frames, episode.steps) == ("Cover.", 25.0, 12, None)
    assert numbers_shown(episode.film, 4) == [(0, 0), (4, 4), (8, 8)]
    _, picture = next(episode.film.pictures())
    assert np.abs(picture.astype(int) - clip_frame(0, *SIZE)).mean() < (0.01 if raw else 4)
    assert [tick.mark.seq for tick in all_ticks(episode.film)] == [0, 10, 11]
    assert one(path, camera="cam_left_wrist").film.key == episode.film.key
    if not raw:
        swapped = next(one(path, swapped=True).film.pictures())[1]
        assert np.abs(swapped[..., ::-1].astype(int) - picture).max() <= 0


def test_one_pixel_makes_another_film(tmp_path: Path) -> None:
    path = write_robodojo(tmp_path / "a.hdf5", 20, raw=True)
    before = one(path).film.key
    assert one(path).film.key == before
    with h5py.File(path, "a") as file:
        file["vision/cam_head/colors"][19, 5, 5, 0] ^= 1
    assert one(path).film.key != before


def test_instructions_and_subtasks_in_json(tmp_path: Path) -> None:
    def steps(told: Any) -> Any:
        path = tmp_path / "a.hdf5"
        path.unlink(missing_ok=True)
        write_robodojo(path, 12, instructions=json.dumps(["Do it.", "Do this."]), subtasks=json.dumps(told))
        episode = one(path)
        assert episode.instruction == "Do it."
        return None if episode.steps is None else [(step.sentence, step.end) for step in episode.steps]

    assert steps([["open", 5], ["close", 7]]) == [("open", 5), ("close", 11)]
    assert steps([{"subtask": "open", "start": 0, "end": 4}, {"subtask": "close", "start": 4, "end": 9}]) == [
        ("open", 4),
        ("close", 9),
    ]
    assert steps({"some": "thing else"}) is None
    assert steps([{"what": "open"}]) is None
    assert steps([]) is None
    with pytest.raises(IntegrityError, match="annotated up to frame 13, and the film has 12"):
        steps([["open", 13]])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"instructions": "no json"}, "'instructions' should hold JSON"),
        ({"instructions": "[1]"}, "'instructions' should be a JSON list of texts"),
        ({"instruction": 5}, "'instruction' should be a text, and 5 came"),
        ({"subtasks": "{"}, "'subtasks' should hold JSON"),
        ({"instruction": np.zeros(3)}, r"'instruction' should be a text, and an array of \(3,\) came"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    path = write_robodojo(tmp_path / "a.hdf5", 3, **more)
    with pytest.raises(IntegrityError, match=says) as raised:
        one(path)
    assert "a.hdf5" in str(raised.value)


def test_a_missing_camera_and_a_wrong_rate(tmp_path: Path) -> None:
    path = write_robodojo(tmp_path / "a.hdf5", 3)
    with pytest.raises(IntegrityError, match="the key 'vision/cam_top' is missing"):
        one(path, camera="cam_top")
    for value in (0, -5, float("nan"), "fast"):
        with h5py.File(path, "a") as file:
            del file["additional_info/frequency"]
            file["additional_info/frequency"] = value
        with pytest.raises(IntegrityError, match="'additional_info/frequency' should be a number above 0"):
            one(path)
    with h5py.File(path, "a") as file:
        del file["vision"]
    with pytest.raises(IntegrityError, match="the key 'vision' is missing"):
        one(path)
