"""Whatever lies at a path is recognised, or it is said what was looked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import h5py
import pytest
from conftest import VIDEOS
from film_samples import shoot
from hdf5_layouts import write_libero_mem, write_rmbench, write_robodojo
from lerobot_layouts import write_lerobot

from compass_edge.data.dataset import FORMATS, find_episode, open_dataset
from compass_edge.data.folder import write_episode_json
from compass_edge.data.robodopamine import SUFFIX
from compass_edge.errors import EnvironmentFault, IntegrityError, UsageError

KEYFRAMES = VIDEOS / "robo-dopamine"


def write_every_format(root: Path) -> dict[str, list[Path]]:
    """Every format, and the paths that it can be opened by."""
    clip = shoot(root / "own" / "deep" / "a.mp4", 5)
    write_episode_json(
        clip.with_suffix(".json"), {"id": "a", "task": "t", "instruction": "i", "fps": 10, "frames": 5, "steps": []}
    )
    video = shoot(root / "videos" / "b.mp4", 5)
    setting = write_rmbench(root / "rmbench" / "data", {}, 3)
    dojo = write_robodojo(root / "dojo" / "insert_key" / "arx_x5" / "data" / "episode_0000000.hdf5", 3)
    libero = write_libero_mem(root / "libero", [2], 4, idle=1)
    lerobot = write_lerobot(root / "lerobot", [3])
    shoot(root / "dopamine" / "e_cam_high.mp4", 9)
    keyframes = root / "dopamine" / f"e{SUFFIX}"
    keyframes.write_text(json.dumps([{"anotation": "x", "start_frame_id": 1, "end_frame_id": 5}]))
    return {
        "folder": [root / "own", clip, clip.with_suffix(".json")],
        "video": [root / "videos", video],
        "rmbench": [root / "rmbench", setting, setting / "data" / "episode0.hdf5"],
        "robodojo": [root / "dojo", dojo],
        "libero_mem": [root / "libero", libero],
        "lerobot": [lerobot],
        "robodopamine": [root / "dopamine", keyframes],
    }


def test_every_format_is_recognised(tmp_path: Path) -> None:
    written = write_every_format(tmp_path)
    assert set(written) == set(FORMATS)
    for format, paths in written.items():
        found = []
        for path in paths:
            dataset = open_dataset(path)
            assert (dataset.format, len(dataset)) == (format, 1), path
            (episode,) = dataset.episodes()
            assert find_episode(dataset, episode.id).id == episode.id
            assert find_episode(dataset, episode.id.rpartition("/")[2]).id == episode.id
            found.append((episode.film.key, episode.frames, episode.steps))
            assert open_dataset(path, format).format == format
        assert all(one == found[0] for one in found)


def test_a_video_without_json_is_one_episode_that_nobody_has_annotated(tmp_path: Path) -> None:
    path = shoot(tmp_path / "put_the_cup_down.mp4", 5)
    (episode,) = open_dataset(path).episodes()
    assert (episode.id, episode.instruction, episode.steps, episode.fps) == (
        "put_the_cup_down",
        "put the cup down",
        None,
        10.0,
    )
    (episode,) = open_dataset(path, task="Lift the cup.").episodes()
    assert episode.instruction == "Lift the cup."


def test_what_cannot_be_opened_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is nothing at"):
        open_dataset(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"no data set that is known here\. Looked for: episodes of our own"):
        open_dataset(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"notes\.txt' is no data set"):
        open_dataset(tmp_path / "notes.txt")
    with pytest.raises(UsageError, match=r"There is no format 'zarr'\. There are: folder, lerobot"):
        open_dataset(tmp_path, "zarr")
    with pytest.raises(UsageError, match="There is no episode of the format rmbench"):
        open_dataset(tmp_path, "rmbench")
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["other"] = 1
    with pytest.raises(IntegrityError, match=r"should have the key vision .* and has other"):
        open_dataset(tmp_path)
    dataset = open_dataset(shoot(tmp_path / "a.mp4", 3))
    with pytest.raises(UsageError, match=r"There is no episode 'b' in a\.mp4\. There are: a\."):
        find_episode(dataset, "b")


@pytest.mark.parametrize(
    ("package", "format"), [("h5py", "libero_mem"), ("pyarrow.parquet", "lerobot"), ("PIL", "rmbench")]
)
def test_a_missing_package_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, format: str
) -> None:
    path = write_every_format(tmp_path)[format][0]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EnvironmentFault, match=r"pip install 'compass-edge\[data\]'"):
        for episode in open_dataset(path).episodes():
            next(episode.film.pictures())


@pytest.mark.skipif(not KEYFRAMES.is_dir(), reason="the shared videos are not here")
def test_the_keyframes_of_robo_dopamine() -> None:
    (episode,) = open_dataset(KEYFRAMES, task="Tidy the table.").episodes()
    assert (episode.frames, episode.size, episode.completed, episode.instruction) == (1277, 16, 16, "Tidy the table.")
    assert episode.begins[1:4] == (147, 211, 286)
    assert episode.film.frames == 1277


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({}, "should be a list of intervals"),
        ([{"anotation": "x", "start_frame_id": 5, "end_frame_id": 5}], r"\[0\]: start_frame_id must be before"),
        ([{"anotation": "x", "start_frame_id": -5, "end_frame_id": 5}], "start_frame_id must be a whole number"),
        ([{"annotation": "x", "start_frame_id": 0, "end_frame_id": 5}], "the key 'anotation' is missing"),
        ([{"anotation": "x", "start_frame_id": 0, "end_frame_id": 50}], "up to frame 50, and the film has 9 frames"),
    ],
)
def test_wrong_keyframes_are_named(tmp_path: Path, told: object, says: str) -> None:
    (path,) = [path for path in write_every_format(tmp_path)["robodopamine"] if path.is_file()]
    path.write_text(json.dumps(told))
    with pytest.raises(IntegrityError, match=says):
        list(open_dataset(path).episodes())
    next(path.parent.glob("*.mp4")).unlink()
    with pytest.raises(IntegrityError, match=r"its video 'e_cam_high\.mp4' is missing; beside it is none"):
        list(open_dataset(path).episodes())
