"""`compass-edge data inspect`: what is there, one episode, its sheet; one sentence and the right code for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from film_samples import shoot
from hdf5_layouts import press_annotation, write_rmbench
from PIL import Image

from compass_edge.cli.main import main
from compass_edge.data.contact_sheet import chosen_frames, draw_contact_sheet
from compass_edge.data.folder import read_episode, write_episode_json
from compass_edge.data.sheet_text import Lettering, wrapped


@pytest.fixture
def presses(tmp_path: Path) -> Path:
    lengths = [4, 1, 2] * 2 + [2, 5, 3]
    write_rmbench(tmp_path / "data", {"episode_0": press_annotation(2, 0, lengths)}, 30)
    write_rmbench(tmp_path / "data", None, 12, number=1)
    return tmp_path / "data"


def test_a_data_set_in_words(presses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "inspect", str(presses)]) == 0
    out = capsys.readouterr().out
    assert "rmbench/data (rmbench)" in out
    assert "2, 1 annotated with 3 steps: 1 recurrence" in out
    assert "42 frames, 2.5 s" in out
    assert "not annotated" in out


def test_a_data_set_as_json(presses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "inspect", str(presses), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["episodes"], told["annotated"], told["steps"]) == ("rmbench", 2, 1, 3)
    assert [episode["K"] for episode in told["list"]] == [3, None]
    assert told["list"][0]["forms"] == ["recurrence"]


def test_one_episode_and_its_sheet(presses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "out" / "sheet.png"
    assert main(["data", "inspect", str(presses), "--episode", "demo_clean/0", "--out", str(sheet)]) == 0
    out = capsys.readouterr().out
    assert "7 to     14  Press the left button one time, for the second time.  [recurrence]" in out
    with Image.open(sheet) as image:
        assert image.format == "PNG"
        assert image.width > 1500
    assert main(["data", "inspect", str(presses), "--episode", "demo_clean/1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["annotated"], told["steps"], told["sheet"]) == (False, None, None)


def test_what_is_wrong_has_its_code_and_no_trace(
    presses: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.hdf5"
    broken.write_bytes(b"\x89HDF\r\n\x1a\n")
    for arguments, code, says in (
        ([str(tmp_path / "gone")], 2, "There is nothing at"),
        ([str(presses), "--episode", "nine"], 2, "There is no episode 'nine'"),
        ([str(presses), "--out", str(tmp_path / "sheet.jpg")], 2, "should end in .png"),
        ([str(presses), "--format", "lerobot"], 4, "info.json' cannot be read"),
        ([str(broken)], 4, "should be an HDF5 file"),
        ([str(presses), "--out", "/proc/nowhere/sheet.png"], 1, "cannot be written"),
    ):
        assert main(["data", "inspect", *arguments]) == code
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
    assert main(["data"]) == 2
    assert main(["data", "annotate", str(tmp_path / "gone.mp4")]) == 2


def test_a_sheet_shows_evenly_spaced_frames_and_each_end(tmp_path: Path) -> None:
    shoot(tmp_path / "a.mp4", 37)
    steps = [{"sentence": "x", "end": 7}, {"sentence": "a long sentence " * 9, "end": 20}, {"sentence": "z", "end": 99}]
    fields = {"id": "a", "task": "t", "instruction": "i " * 200, "fps": 10, "frames": 37}
    write_episode_json(tmp_path / "a.json", {**fields, "steps": steps})
    episode = read_episode(tmp_path / "a.json")
    assert chosen_frames(episode, 4) == [0, 7, 12, 20, 24, 36]
    assert chosen_frames(episode, 1) == [0, 7, 20]
    assert len(chosen_frames(episode, 300)) == 37
    annotated = draw_contact_sheet(episode, shown=4)
    for told in (None, []):
        write_episode_json(tmp_path / "a.json", {**fields, "steps": told})
        bare = draw_contact_sheet(read_episode(tmp_path / "a.json"), shown=4)
        assert bare.width == annotated.width
    colours = {tuple(pixel) for pixel in np.asarray(annotated)[-140:-60].reshape(-1, 3)[::7].tolist()}
    assert len(colours) > 4  # the bands of three steps, the line and the paper


def test_lines_fit() -> None:
    font = Lettering().small
    for text in ("", "word", "many words " * 30, "x" * 400):
        for most in (1, 2, 3):
            lines = wrapped(text, font, 120, most)
            assert len(lines) <= most
            assert all(font.getlength(line) <= 120 for line in lines)
    assert wrapped("one two", font, 500, 2) == ["one two"]
    assert wrapped("many words " * 30, font, 120, 2)[-1].endswith("...")
