"""Presets: found by name, made in any process, and a sentence when their files are missing or damaged."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from exported_samples import Samples

from compass_edge.errors import EnvironmentFault, IntegrityError, UsageError
from compass_edge.loop.settings import Settings
from compass_edge.presets import registry, tiny
from compass_edge.presets.registry import find_preset, join


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture
def folder(tmp_path: Path, samples: Samples, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Random weights where compass-tiny's would be."""
    samples.copy(tmp_path / "vlm", "qwen3-vl")
    samples.copy(tmp_path / "prm", "robometer")
    (tmp_path / "settings.json").write_text('{"candidate": {"high": 0.7}}')
    monkeypatch.setattr(tiny, "FOLDER", tmp_path)
    return tmp_path


def test_it_is_found_by_name_and_others_may_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PRESETS", dict(registry.PRESETS))
    assert find_preset("tiny") is tiny.PRESET
    with pytest.raises(UsageError, match=r"There is no preset 'huge'. There are: tiny, orin-nano-8, "):
        find_preset("huge")
    join(replace(tiny.PRESET, name="huge"))
    assert find_preset("huge").about == tiny.PRESET.about
    with pytest.raises(UsageError, match="There is a preset 'huge' already"):
        join(replace(tiny.PRESET, name="huge"))


def test_it_can_be_sent_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(tiny.PRESET)) == tiny.PRESET
    assert pickle.loads(pickle.dumps(partial(tiny.models, threads=2))).func is tiny.models


def test_one_model_plays_two_roles_and_all_share_what_they_have_seen(folder: Path) -> None:
    models = tiny.models(threads=1)
    assert models.orienter is models.verifier
    assert models.orienter.body.vision._store is models.prm.body.vision._store  # type: ignore[attr-defined]
    assert models.names() == tiny.names()
    assert models.orienter.body.options.threads == 1  # type: ignore[attr-defined]
    assert tiny.settings(10.0).candidate.high == 0.7
    assert tiny.settings(10.0).max_frames == Settings().max_frames
    assert folder == tiny.FOLDER


@pytest.mark.parametrize("missing", ["vlm/manifest.json", "prm/manifest.json"])
def test_missing_files_are_something_to_install(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    for made in (tiny.models, tiny.names):
        with pytest.raises(EnvironmentFault, match=r"compass-tiny should come with the package, and '.*' is not there"):
            made()


def test_missing_settings_are_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny, "FOLDER", tmp_path)
    with pytest.raises(EnvironmentFault, match=r"settings\.json' is not there\. Install compass-edge again"):
        tiny.settings(10.0)


def test_a_damaged_file_is_said_to_be(folder: Path) -> None:
    manifest = json.loads((folder / "prm" / "manifest.json").read_text())
    part = max(manifest["files"], key=lambda name: manifest["files"][name]["bytes"])
    data = bytearray((folder / "prm" / part).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "prm" / part).write_bytes(data)
    with pytest.raises(
        IntegrityError, match=r"compass-tiny, which comes with the package, is damaged: .*training\.publish"
    ):
        tiny.models(threads=1)
    (folder / "settings.json").write_text('{"every": 0}')
    with pytest.raises(IntegrityError, match=r"is damaged: .*every must be a whole number"):
        tiny.settings(10.0)
