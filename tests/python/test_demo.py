"""`compass-edge demo`: the loop on the bundled episodes, with oracles here, and a sentence where there is no model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from oracle_preset import ORACLES

from compass_edge.cli.main import main
from compass_edge.eval import diagnosis
from compass_edge.models import ProgressModel
from compass_edge.presets import registry, tiny


def test_three_episodes_two_errors_each_and_a_page_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(registry.PRESETS, "tiny", ORACLES)
    out = tmp_path / "pages"
    assert main(["demo", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert told.count("outcome     done") == 3
    assert told.count("without     ") == 3
    for name in ("Q4-0", "R1-0", "S1-0"):
        page = out / name / "index.html"
        assert f"report      {page}" in told
        assert "the progress model alone, without context" in page.read_text("utf-8")
    assert "with context   without" in told


def test_ctrl_c_keeps_the_page_and_ends_the_tour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(registry.PRESETS, "tiny", ORACLES)

    def interrupted(*_: ProgressModel) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(diagnosis, "_score", interrupted)
    assert main(["demo", "--json", "--out", str(tmp_path)]) == 130
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])["episodes"]
    assert [(one["episode"], one["outcome"], one["without"]) for one in shown] == [("Q4/0", "done", None)]
    assert Path(shown[0]["page"]).exists()


def test_without_the_model_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tiny, "FOLDER", tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 3
    assert "The model compass-tiny should come with the package" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_it_needs_neither_a_simulator_nor_a_drawing_library(tmp_path: Path) -> None:
    """On a machine with the package's own dependencies alone."""
    script = (
        "import sys\n"
        "for name in ('matplotlib', 'mujoco', 'torch', 'PIL', 'h5py', 'pyarrow', 'onnx', 'cv2', 'scipy'):\n"
        "    sys.modules[name] = None\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from oracle_preset import ORACLES\n"
        "from compass_edge.presets.registry import PRESETS\n"
        "PRESETS['tiny'] = ORACLES\n"
        "from compass_edge.cli.main import main\n"
        "sys.exit(main(['demo', '--json', '--out', sys.argv[2]]))\n"
    )
    folder = Path(__file__).parent
    command = [sys.executable, "-c", script, str(folder), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
