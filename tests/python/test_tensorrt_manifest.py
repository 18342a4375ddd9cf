"""Engines in the manifest: what is written is what is read, and each way in which an engine may not fit has its sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exported_samples import Samples
from model_samples import forge
from tensorrt_samples import FP16, VERSION, listed

from compass_edge.engines.engine_record import EngineRecord, graph_digest, verify_engines
from compass_edge.engines.manifest import inspect, read_manifest, verify, write_manifest
from compass_edge.engines.store import installed, remove
from compass_edge.engines.tensorrt.load import choose
from compass_edge.errors import IntegrityError, UsageError

pytestmark = pytest.mark.tensorrt
VISION = "engines/sm_86/vision.engine"
REBUILD = r"`compass-edge models build meter --target sm_86`"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture
def model(samples: Samples, tmp_path: Path) -> Path:
    folder = samples.copy(tmp_path / "meter", "robometer", **FP16)
    listed(folder)
    return folder


def chosen(folder: Path, target: str = "sm_86", flavour: str = "tensorrt-rtx", version: str = VERSION) -> Any:
    return choose(folder, read_manifest(folder), target, flavour, version)


def test_what_is_written_is_what_is_read(model: Path) -> None:
    manifest = read_manifest(model)
    assert manifest == inspect(model) == verify(model)
    record = manifest.engines[VISION]
    assert isinstance(record, EngineRecord)
    assert record.profile["F"] == (1, 4, 4)
    assert record.most["P"] == 48
    assert record.tensors["patches"].shape == ("F", "P", 1536)
    assert record.tensors["patches"].bytes({"F": 2, "P": 3}) == 2 * 3 * 1536 * 2
    assert record.graph == graph_digest(manifest.files, "vision")
    assert manifest.engine_bytes == sum((model / name).stat().st_size for name in manifest.engines)
    before = (model / "manifest.json").read_bytes()
    write_manifest(model, manifest)
    assert (model / "manifest.json").read_bytes() == before


def test_a_manifest_without_engines_is_as_it_always_was(samples: Samples) -> None:
    folder = samples.model("robometer", **FP16)
    assert "engines" not in json.loads((folder / "manifest.json").read_text())
    assert read_manifest(folder).engines == {}


def test_the_models_own_digest_does_not_depend_on_its_engines(model: Path, samples: Samples) -> None:
    assert read_manifest(model).digest == samples.manifest("robometer", **FP16).digest


def test_the_manifests_hash_covers_its_engines(model: Path) -> None:
    path = model / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"target": "sm_86"', '"target": "sm_89"', 1))
    with pytest.raises(IntegrityError, match=r"has changed since it was written"):
        read_manifest(model)


def test_engines_that_fit_are_chosen(model: Path) -> None:
    listed(model, "sm_89")
    assert {part: name for part, (name, _) in chosen(model).items()} == {
        "vision": VISION,
        "decoder": "engines/sm_86/decoder.engine",
    }


def flip(folder: Path) -> None:
    content = bytearray((folder / VISION).read_bytes())
    content[7] ^= 1
    (folder / VISION).write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (flip, "should have the sha256 .*its content has changed"),
        (lambda folder: (folder / VISION).write_bytes(b"short"), "should have .* bytes, and it has 5"),
        (lambda folder: (folder / VISION).unlink(), "should be there by the manifest, and it is not"),
    ],
    ids=["flipped", "short", "gone"],
)
def test_a_tampered_engine_is_refused(model: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(model)
    for check in (lambda: chosen(model), lambda: verify_all(model)):
        with pytest.raises(IntegrityError, match=rf"{said}.*Build it again: {REBUILD}"):
            check()


def verify_all(folder: Path) -> None:
    manifest = read_manifest(folder)
    verify_engines(folder, manifest.engines, manifest.files)


def test_an_engine_that_leads_out_of_the_folder_is_refused(model: Path, tmp_path: Path) -> None:
    shutil.move(model / VISION, tmp_path / "elsewhere")
    (model / VISION).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityError, match=rf"link that leads out.*{REBUILD}"):
        chosen(model)


def test_an_engine_of_another_chip_is_refused(model: Path) -> None:
    with pytest.raises(IntegrityError, match=r"built for sm_86, and this GPU is sm_120.*build meter --target sm_120`"):
        chosen(model, "sm_120")


@pytest.mark.parametrize(("flavour", "version"), [("tensorrt-rtx", "1.8.0.2"), ("tensorrt", "10.16.0.72")])
def test_an_engine_of_another_tensorrt_is_refused(model: Path, flavour: str, version: str) -> None:
    said = f"built by tensorrt-rtx {VERSION}, and {flavour} {version} is installed here.*{REBUILD}"
    with pytest.raises(IntegrityError, match=said):
        chosen(model, flavour=flavour, version=version)


def test_an_engine_of_another_graph_is_refused(model: Path) -> None:
    """As after an export into the same folder by somebody who kept the old engines."""
    manifest = read_manifest(model)
    files = {**manifest.files, "vision.onnx": replace(manifest.files["vision.onnx"], sha256="0" * 64)}
    write_manifest(model, replace(manifest, files=files))
    for check in (lambda: chosen(model), lambda: verify_all(model)):
        with pytest.raises(IntegrityError, match=rf"made from another vision.onnx.*{REBUILD}"):
            check()


def test_a_model_without_engines_says_how_to_have_some(samples: Samples) -> None:
    folder = samples.model("robometer", **FP16)
    with pytest.raises(
        UsageError, match=r"has no engine of its vision\. Build them: `compass-edge models build .*sm_87`"
    ):
        chosen(folder, "sm_87")


def changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda engines: engines[VISION].update(changes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed(part="head"), "part' .* should be vision or decoder"),
        (changed(target="gpu"), "target' .* should be like sm_86"),
        (changed(flavour="onnx"), "flavour' .* should be tensorrt-rtx or tensorrt"),
        (changed(version=""), "version' .* should be a text"),
        (changed(bytes=True), "bytes' .* should be a number of bytes"),
        (changed(sha256="0"), "sha256' .* should be 64 hexadecimal digits"),
        (changed(profile={"F": [2, 1, 3]}), "profile.F' .* three rising numbers"),
        (changed(profile={"F": 1}), "profile.F' .* three rising numbers"),
        (changed(profile={}), "tensors.* a shape of numbers and axes of the profile"),
        (changed(tensors={"x": {"given": True, "dtype": "int3", "shape": [1]}}), "dtype' .* should be float32"),
        (changed(tensors={"x": {"given": True, "dtype": "int64", "shape": [0]}}), "a shape of numbers"),
        (changed(more=1), "an object of bytes"),
        (lambda engines: engines.update({"../x": engines[VISION]}), "only files inside the folder"),
        (lambda engines: engines.update({"x.engine": engines[VISION]}), "a file below engines/"),
        (lambda engines: engines.clear(), "an object with an engine at least"),
    ],
)
def test_a_forged_record_is_refused(model: Path, change: Callable[[dict[str, Any]], None], said: str) -> None:
    engines = json.loads((model / "manifest.json").read_text())["engines"]
    change(engines)
    forge(model, engines=engines)
    with pytest.raises(IntegrityError, match=said):
        read_manifest(model)


def test_the_store_sees_and_removes_them(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(model.parent))
    assert [one.fault for one in installed()] == [None]
    (model / VISION).write_bytes(b"short")
    assert "should have" in (installed()[0].fault or "")
    assert remove(model) == []
    assert not model.exists()
