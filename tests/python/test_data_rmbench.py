"""RMBench: swapped JPEGs, and presses that must not be merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from film_samples import SIZE, all_ticks, numbers_shown
from hdf5_layouts import padded, press_annotation, write_rmbench
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.data.fields import Fields
from compass_edge.data.rmbench import RmbenchDataset, annotated_steps
from compass_edge.errors import IntegrityError, UsageError
from compass_edge.frames.clip import clip_frame, read_number


def test_an_episode_of_the_press_task(tmp_path: Path) -> None:
    lengths = [4, 1, 2] * 2 + [3, 2, 1] + [2, 5, 3]
    annotation = {"episode_0": press_annotation(2, 1, lengths)}
    write_rmbench(tmp_path, annotation, sum(lengths))
    write_rmbench(tmp_path, None, 8, number=10)
    write_rmbench(tmp_path, None, 8, number=9)
    dataset = RmbenchDataset(tmp_path)
    assert len(dataset) == 3
    episode, ninth, tenth = dataset.episodes()
    assert (episode.id, ninth.id, tenth.id) == tuple(f"rmbench/press_button/demo_clean/{n}" for n in (0, 9, 10))
    assert episode.instruction == "Press as often as the numbers say."
    assert [(step.sentence, step.end) for step in episode.truth] == [
        ("Press the left button one time, for the first time.", 7),
        ("Press the left button one time, for the second time.", 14),
        ("Press the middle button one time.", 20),
        ("Press the confirm button.", 29),  # complete at the last of 30 frames
    ]
    assert [step.forms for step in episode.truth] == [("recurrence",), ("recurrence",), (), ()]
    assert episode.completed == 4
    assert ninth.steps is None
    assert round(episode.fps, 2) == 16.67


def test_colours_are_as_they_were_rendered(tmp_path: Path) -> None:
    write_rmbench(tmp_path, None, 12)
    (episode,) = RmbenchDataset(tmp_path).episodes()
    assert numbers_shown(episode.film) == [(number, number) for number in range(12)]
    _, picture = next(episode.film.pictures())
    assert np.abs(picture.astype(int) - clip_frame(0, *SIZE)).mean() < 4
    ticks = all_ticks(episode.film, 12)
    assert [tick.mark.seq for tick in ticks] == [0, 10, 11]
    assert [tick.image.digest for tick in ticks] == [f"{episode.film.key}/{seq}" for seq in (0, 10, 11)]
    assert [read_number(tick.image.pixels.rgb()) for tick in ticks] == [0, 10, 11]
    assert ticks[1].mark.captured_ns == pytest.approx(10e9 * 15 / 250, abs=1e3)


def test_the_film_is_known_by_its_pictures(tmp_path: Path) -> None:
    first = next(RmbenchDataset(write_rmbench(tmp_path / "a", None, 5)).episodes()).film
    same = next(RmbenchDataset(write_rmbench(tmp_path / "b", None, 5), "left_camera").episodes()).film
    longer = next(RmbenchDataset(write_rmbench(tmp_path / "c", None, 6)).episodes()).film
    assert first.key == same.key
    assert first.key != longer.key


def test_the_video_is_the_film_where_there_is_no_hdf5(tmp_path: Path) -> None:
    setting = write_rmbench(tmp_path, {"episode_0": [["Push.", 5], ["Pull.", 6]]}, 12, video=True)
    (episode,) = RmbenchDataset(setting).episodes()
    assert [step.end for step in episode.truth] == [5, 11]
    assert numbers_shown(episode.film, 5) == [(0, 0), (5, 5), (10, 10)]
    with pytest.raises(IntegrityError, match=r"the left_camera is only in data/episode0\.hdf5"):
        list(RmbenchDataset(setting, "left_camera").episodes())


@settings(max_examples=100)
@given(st.data())
def test_identical_texts_keep_their_occurrences(data: st.DataObject) -> None:
    left, middle = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    count = 3 * (left + middle) + 3
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=count, max_size=count))
    told = Fields({"episode_0": press_annotation(left, middle, lengths)}, "here")
    tail = data.draw(st.integers(0, 20))
    steps = annotated_steps(told, "episode_0", sum(lengths) + tail)
    assert len(steps) == left + middle + 1
    assert len({step.sentence for step in steps}) == len(steps)
    presses = [sum(lengths[3 * press : 3 * press + 3]) for press in range(left + middle + 1)]
    expected = np.cumsum(presses).tolist()
    if not tail:
        expected[-1] -= 1
    assert [step.end for step in steps] == expected


def test_other_primitives_with_one_text_are_one_step() -> None:
    told = Fields(
        {"e": [["Swap A and B.", 3]] * 12 + [["Press the button.", 2]] * 3 + [["Swap A and B.", 3]] * 12}, "here"
    )
    steps = annotated_steps(told, "e", 100)
    assert [step.end for step in steps] == [36, 42, 78]
    assert [step.facts.get("occurrence") for step in steps] == [1, None, 2]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ([["Push.", 99]], "annotated up to frame 99, and the film has 8 frames"),
        ([["Push.", -1]], r"episode_0\[0\] must be a text and a number of frames, and \['Push.', -1\] came"),
        ([["Push.", 2.5]], "must be a text and a number of frames"),
        ([["Push.", None]], "must be a text and a number of frames"),
        ([["Push."]], "must be a text and a number of frames"),
        ([["Push.", 0]], "should end after frame 0"),
        ([["Press the left button one time.", 2]] * 4, "3 times in a row for every press, and it comes 4 times"),
        ({"Push.": 3}, "episode_0 must be a list"),
    ],
)
def test_a_wrong_annotation_is_named(tmp_path: Path, told: Any, says: str) -> None:
    write_rmbench(tmp_path, {"episode_0": told}, 8)
    with pytest.raises(IntegrityError, match=says) as raised:
        list(RmbenchDataset(tmp_path).episodes())
    assert "language_annotation.json" in str(raised.value)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    setting = write_rmbench(tmp_path, None, 6)
    path = setting / "data" / "episode0.hdf5"
    whole = path.read_bytes()
    with pytest.raises(
        IntegrityError, match=r"episode0\.hdf5': the key 'observation/top/rgb' is missing \(pictures as"
    ):
        list(RmbenchDataset(setting, "top").episodes())
    for bad in (np.zeros((6, 4)), np.zeros((6, 4, 4, 1), np.uint8), np.zeros((0, 4, 4, 3), np.uint8), np.zeros(6)):
        with h5py.File(path, "a") as file:
            del file["observation/head_camera/rgb"]
            file["observation/head_camera/rgb"] = bad
        with pytest.raises(IntegrityError, match=r"'observation/head_camera/rgb' should be pictures as .* came"):
            list(RmbenchDataset(setting).episodes())
    with h5py.File(path, "a") as file:
        del file["observation/head_camera/rgb"]
        file["observation/head_camera/rgb"] = padded([b"\xff\xd8no picture"] * 6)
    (episode,) = RmbenchDataset(setting).episodes()
    with pytest.raises(IntegrityError, match=r"frame 0 of the key 'observation/head_camera/rgb' cannot be read"):
        list(episode.film.pictures())
    for size in (0, 7, 100, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(IntegrityError, match=r"episode0\.hdf5' should be an HDF5 file, and it cannot be read"):
            list(RmbenchDataset(setting).episodes())
    (setting / "data" / "episode_x.hdf5").write_bytes(whole)
    with pytest.raises(IntegrityError, match="should be called episode and a number"):
        RmbenchDataset(setting)


def test_a_wrong_instruction_is_named(tmp_path: Path) -> None:
    setting = write_rmbench(tmp_path, None, 3)
    told = setting / "instructions" / "episode0.json"
    told.write_text(json.dumps({"seen": [3]}))
    with pytest.raises(IntegrityError, match="must be lists of texts"):
        list(RmbenchDataset(setting).episodes())
    told.unlink()
    assert next(RmbenchDataset(setting).episodes()).instruction == "press button"


def test_every_so_manieth_needs_a_number(tmp_path: Path) -> None:
    (episode,) = RmbenchDataset(write_rmbench(tmp_path, None, 3)).episodes()
    with pytest.raises(UsageError, match="n of at least 1"):
        list(episode.film.pictures(0))
