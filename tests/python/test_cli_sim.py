"""compass-edge sim, as a person and as a program would use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("mujoco")

from compass_edge.cli.main import main


def test_list_tells_tasks_and_negatives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "list"]) == 0
    told = capsys.readouterr().out
    assert "S2  state +QR      6 steps  Move each" in told
    assert "E1  early_stop  film of R1   62.5" in told
    assert main(["sim", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert (len(listed["tasks"]), len(listed["negatives"])) == (24, 15)
    assert listed["tasks"][1]["mix"] == ["sequence", "recurrence"]


def test_check_without_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "check", "--no-pictures", "--tasks", "R1", "--seeds", "0,4", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tasks"], told["episodes"], told["completed"], told["wrong"]) == (1, 2, 2, [])
    assert told["per_task"][0]["floor"] is None
    assert len(set(told["per_task"][0]["state_hash"])) == 2
    assert main(["sim", "check", "--no-pictures", "--tasks", "R1", "--seeds", "0"]) == 0
    assert "1 tasks, 1 of 1 episodes completed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--tasks", "Z9"], "There is no task 'Z9'"),
        (["--seeds", "4-0"], "a range goes from its lower end"),
        (["--seeds", "50"], "A seed must be 0-4 (test)"),
        (["--out", "{file}"], "--out must name a folder"),
    ],
)
def test_what_cannot_be_rendered_is_told(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert main(["sim", "render", *(word.format(file=file) for word in arguments)]) == 2
    assert told in capsys.readouterr().err


def test_without_mujoco_the_cure_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    assert main(["sim", "render"]) == 3
    assert main(["sim", "list"]) == 0
    assert "pip install 'compass-edge[sim]'" in capsys.readouterr().err
