"""LIBERO-Mem: steps end where the robot's subgoal changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from film_samples import SIZE, numbers_shown
from hdf5_layouts import LIBERO_TASK, write_libero_mem

from compass_edge.data.libero_mem import LiberoMemDataset
from compass_edge.errors import IntegrityError
from compass_edge.frames.clip import clip_frame

FRAMES = 40


def test_a_recurring_subgoal_is_as_many_steps(tmp_path: Path) -> None:
    write_libero_mem(tmp_path, [9, 21, 33], FRAMES)
    (episode,) = LiberoMemDataset(tmp_path).episodes()
    assert episode.id == f"libero_mem/{LIBERO_TASK}/demo_0"
    assert episode.instruction == "lift the bowl and place it back on the plate 3 times"
    assert [(step.sentence, step.end) for step in episode.truth] == [
        ("bowl 1 on plate 1, for the first time.", 9),
        ("bowl 1 on plate 1, for the second time.", 21),  # a frame in which only the wrist camera sees the robot
        ("bowl 1 on plate 1, for the third time.", 33),
    ]
    assert (episode.size, episode.completed, episode.fps) == (3, 3, 20.0)
    assert episode.tracks["idle"] == [False] * 35 + [True] * 5
    assert numbers_shown(episode.film, 15) == [(0, 0), (15, 15), (30, 30)]


def test_demonstrations_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for demo in ("demo_0", "demo_10", "demo_2"):
        write_libero_mem(tmp_path, [5], 12, demo=demo)
    dataset = LiberoMemDataset(tmp_path)
    assert len(dataset) == 3
    assert [episode.id.rpartition("/")[2] for episode in dataset.episodes()] == ["demo_0", "demo_2", "demo_10"]


def test_pictures_that_are_upside_down_are_turned(tmp_path: Path) -> None:
    write_libero_mem(tmp_path, [5], 12, flipped=True)
    for flip in (False, True):
        (episode,) = LiberoMemDataset(tmp_path, flip=flip).episodes()
        _, picture = next(episode.film.pictures())
        assert (picture == clip_frame(0, *SIZE)).all() == flip
    (wrist,) = LiberoMemDataset(tmp_path, "eye_in_hand_rgb").episodes()
    assert (next(wrist.film.pictures())[1] == clip_frame(0, *SIZE)).all()


def test_without_metainfo_it_is_not_annotated(tmp_path: Path) -> None:
    path = write_libero_mem(tmp_path, [], 12)
    (episode,) = LiberoMemDataset(path).episodes()
    assert episode.steps is None  # no subgoal was ever written down
    (tmp_path / "metainfo.json").unlink()
    (episode,) = LiberoMemDataset(path).episodes()
    assert episode.steps is None
    assert episode.instruction == "lift the bowl and place it back on the plate 3 times"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda told: told.pop("exo_boxes"), "the key 'exo_boxes' is missing"),
        (lambda told: told["exo_boxes"].pop(), "exo_boxes must have an entry for each of 12 frames, and has 11"),
        (lambda told: told["exo_boxes"].append({}), "for each of 12 frames, and has 13"),
        (lambda told: told["exo_boxes"].__setitem__(4, 7), r"exo_boxes\[4\] must be a JSON object"),
        (
            lambda told: told["exo_boxes"].__setitem__(4, {"robot": [1]}),
            r"exo_boxes\[4\]: robot must be \[number, box, subgoal\]",
        ),
        (lambda told: told.__setitem__("task_description", 3), "task_description must be a text"),
        (lambda told: told["exo_boxes"].__setitem__(0, {"robot": [1, [], "one: x"]}), "should end after frame 0"),
    ],
)
def test_wrong_metainfo_is_named(tmp_path: Path, change: Any, says: str) -> None:
    write_libero_mem(tmp_path, [5], 12)
    meta = tmp_path / "metainfo.json"
    raw = json.loads(meta.read_text())
    change(raw[LIBERO_TASK]["demo_0"])
    meta.write_text(json.dumps(raw))
    with pytest.raises(IntegrityError, match=says) as raised:
        list(LiberoMemDataset(tmp_path).episodes())
    assert "metainfo.json" in str(raised.value)
    assert "demo_0" in str(raised.value)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    path = write_libero_mem(tmp_path, [5], 12)
    with h5py.File(path, "a") as file:
        del file["data/demo_0/actions"]
    with pytest.raises(IntegrityError, match=r"the key 'data/demo_0/actions' is missing"):
        list(LiberoMemDataset(tmp_path).episodes())
    for bad in (np.zeros((11, 7)), np.zeros(12), np.zeros((12, 3))):
        with h5py.File(path, "a") as file:
            if "actions" in file["data/demo_0"]:
                del file["data/demo_0/actions"]
            file["data/demo_0/actions"] = bad
        with pytest.raises(IntegrityError, match="7 numbers for each of 12 frames"):
            list(LiberoMemDataset(tmp_path).episodes())
    (tmp_path / "metainfo.json").write_text("")
    with pytest.raises(IntegrityError, match=r"metainfo\.json' should be JSON, and it is empty"):
        list(LiberoMemDataset(tmp_path).episodes())
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(IntegrityError, match="should be an HDF5 file"):
        LiberoMemDataset(tmp_path)
    path.unlink()
    with h5py.File(path, "w") as file:
        file["data"] = 3
    with pytest.raises(IntegrityError, match="'data' should be a group"):
        LiberoMemDataset(tmp_path)
