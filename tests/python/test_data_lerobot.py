"""LeRobot v3: several episodes in one video, and steps in any of three places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from film_samples import all_ticks, numbers_shown
from lerobot_layouts import CAMERA, FPS, write_lerobot, write_table

from compass_edge.data.lerobot import LerobotDataset
from compass_edge.errors import IntegrityError, UsageError

LENGTHS = [13, 20, 8]


def spans(root: Path) -> list[Any]:
    return [
        None if episode.steps is None else [(step.sentence, step.end) for step in episode.steps]
        for episode in LerobotDataset(root).episodes()
    ]


def test_each_episode_is_its_stretch_of_the_file(tmp_path: Path) -> None:
    dataset = LerobotDataset(write_lerobot(tmp_path / "cubes", LENGTHS))
    assert (len(dataset), dataset.name, dataset.camera, dataset.fps) == (3, "lerobot/cubes", CAMERA, FPS)
    first = 0
    keys = set()
    for place, (episode, length) in enumerate(zip(dataset.episodes(), LENGTHS, strict=True)):
        assert (episode.id, episode.frames, episode.steps) == (f"lerobot/cubes/{place}", length, None)
        assert episode.instruction == ("open the box" if place == 1 else "put the cube into the box")
        assert numbers_shown(episode.film) == [(number, first + number) for number in range(length)]
        assert all_ticks(episode.film)[-1].mark.seq == length - 1
        first += length
        keys.add(episode.film.key)
    assert len(keys) == 3


def test_the_camera_is_chosen_by_its_key_or_the_end_of_it(tmp_path: Path) -> None:
    root = write_lerobot(tmp_path, [4])
    for camera in ("wrist", "observation.images.wrist"):
        (episode,) = LerobotDataset(root, camera).episodes()
        assert numbers_shown(episode.film)[0] == (0, 1000)
    with pytest.raises(UsageError, match=r"There are: observation\.images\.top, observation\.images\.wrist"):
        LerobotDataset(root, "left")


def test_steps_of_a_subtask_index(tmp_path: Path) -> None:
    indices = [0] * 5 + [1] * 8 + [-1] * 2 + [1] * 8 + [0] * 4 + [1] * 3 + [None] * 3 + [None] * 8
    root = write_lerobot(tmp_path, LENGTHS, columns={"subtask_index": indices}, subtasks=["reach", "lift"])
    assert spans(root) == [
        [("reach", 5), ("lift", 12)],
        [("lift, for the first time.", 10), ("reach", 14), ("lift, for the second time.", 17)],
        None,
    ]


def test_steps_of_language_rows(tmp_path: Path) -> None:
    def rows(*texts: tuple[float, str, str]) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": text, "style": style, "timestamp": at} for at, style, text in texts]

    told = rows((0.0, "plan", "all"), (0.0, "subtask", "reach"), (6 / FPS, "subtask", "lift"))
    column = [told] * 13 + [rows((0.0, "subtask", "open"))] * 20 + [None] * 8
    root = write_lerobot(tmp_path, LENGTHS, columns={"language_persistent": column})
    assert spans(root) == [[("reach", 6), ("lift", 12)], [("open", 19)], None]


@pytest.mark.parametrize("prefix", ["sparse_", "dense_", ""])
def test_steps_that_sarm_wrote(tmp_path: Path, prefix: str) -> None:
    columns = {
        f"{prefix}subtask_names": [["reach", "lift"], None, ["lift"]],
        f"{prefix}subtask_end_frames": [[6, 13], None, [5]],
    }
    assert spans(write_lerobot(tmp_path, LENGTHS, episode_columns=columns)) == [
        [("reach", 6), ("lift", 12)],
        None,
        [("lift", 5)],
    ]


@pytest.mark.parametrize(
    ("info", "says"),
    [
        ({"codebase_version": "v2.1"}, r"codebase_version must be v3\.0, and 'v2\.1' came"),
        ({"codebase_version": None}, "codebase_version must be a text"),
        ({"fps": 0}, "fps must be a number above 0"),
        ({"fps": "30"}, "fps must be a number above 0"),
        ({"features": []}, "features must be a JSON object"),
        ({"features": {"action": {"dtype": "float32"}}}, "features must have one of dtype video, and has action"),
        ({"features": {"top": {"dtype": "image"}}}, "convert_image_to_video"),
        ({"video_path": "videos/{camera}.mp4"}, "cannot be filled in"),
        ({"video_path": "../{video_key}.mp4"}, "outside the data set"),
        ({"video_path": "{video_key}.mp4"}, "cannot be read: No such file"),
    ],
)
def test_wrong_info_is_named(tmp_path: Path, info: dict[str, Any], says: str) -> None:
    root = write_lerobot(tmp_path / "set", [4], info=info)
    with pytest.raises(IntegrityError, match=says):
        list(LerobotDataset(root).episodes())


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"length": [float("nan")]}, "episode 0: length must be a whole number of at least 1, and nan came"),
        ({"length": [-4]}, "length must be a whole number of at least 1, and -4 came"),
        ({"length": [0]}, "length must be a whole number of at least 1"),
        ({"length": [9]}, "which is 4.0 frames at 30 fps, and its length is 9 frames"),
        ({"length": [5]}, "its 5 frames begin at frame 0 of .*, which has 4 frames"),
        ({f"videos/{CAMERA}/from_timestamp": [float("nan")]}, "from_timestamp must be a number of at least 0, and nan"),
        ({f"videos/{CAMERA}/from_timestamp": [-1.0]}, "from_timestamp must be a number of at least 0"),
        ({f"videos/{CAMERA}/file_index": [7]}, r"file-007\.mp4' cannot be read"),
        ({f"videos/{CAMERA}/file_index": [None]}, "file_index must be a whole number"),
        ({"subtask_names": [["a", "b"]], "subtask_end_frames": [[2]]}, "subtask_names has 2 entries"),
        ({"subtask_names": [["a"]], "subtask_end_frames": [[9]]}, "annotated up to frame 9, and the film has 4 frames"),
        ({"subtask_names": [["a", "b"]], "subtask_end_frames": [[3, 2]]}, "should end after frame 3"),
    ],
)
def test_a_wrong_episode_is_named(tmp_path: Path, columns: dict[str, Any], says: str) -> None:
    root = write_lerobot(tmp_path, [4], episode_columns=columns)
    with pytest.raises(IntegrityError, match=says):
        list(LerobotDataset(root).episodes())


def test_wrong_frames_are_named(tmp_path: Path) -> None:
    root = write_lerobot(tmp_path, [4], columns={"subtask_index": [0, 0, 5, 5]}, subtasks=["reach"])
    with pytest.raises(IntegrityError, match=r"subtask_index 5 is not in meta/subtasks\.parquet"):
        spans(root)
    (root / "meta" / "subtasks.parquet").unlink()
    with pytest.raises(IntegrityError, match=r"subtasks\.parquet' should be a parquet file, and it is not there"):
        spans(root)
    data = root / "data" / "chunk-000" / "file-000.parquet"
    write_table(data, pq.read_table(data).to_pylist()[:3])
    with pytest.raises(IntegrityError, match="should have 4 rows, and has 3"):
        spans(root)
    data.write_bytes(data.read_bytes()[:-20])
    with pytest.raises(IntegrityError, match=r"file-000\.parquet' should be a parquet file, and it cannot be read"):
        spans(root)


def test_wrong_tables_are_named(tmp_path: Path) -> None:
    root = write_lerobot(tmp_path, [4])
    path = root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    row = pq.read_table(path).to_pylist()[0]
    for column in ("length", f"videos/{CAMERA}/from_timestamp"):
        write_table(path, [{key: value for key, value in row.items() if key != column}])
        with pytest.raises(IntegrityError, match=f"the column '{column}' is missing"):
            list(LerobotDataset(root).episodes())
    path.write_bytes(b"PAR1")
    with pytest.raises(IntegrityError, match="should be a parquet file"):
        LerobotDataset(root)
    path.unlink()
    with pytest.raises(IntegrityError, match=r"meta/episodes/chunk-000/file-000\.parquet is missing"):
        LerobotDataset(root)
    (root / "meta" / "info.json").write_text("[]")
    with pytest.raises(IntegrityError, match="must be a JSON object, and a list came"):
        LerobotDataset(root)
