"""A model's folder that is not what was exported is never run: not by the command, not by either engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_samples import Samples
from model_samples import forge

from compass_edge.cli.main import main
from compass_edge.engines.manifest import read_manifest, record_files
from compass_edge.engines.onnx.decoder import Decoder
from compass_edge.engines.onnx.self_test import self_test
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.errors import IntegrityError, UsageError
from compass_edge.prms.robometer import RoboMeter

FILES = ["vision.onnx", "vision.onnx.data", "embedding.onnx", "embedding.onnx.data", "decoder.onnx", "decoder.onnx.data",
         "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json", "tokenizer/config.json", "manifest.json"]  # fmt: skip
ENGINES = pytest.mark.parametrize("kind", ["qwen3-vl", "robometer"])


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def opened(folder: Path, kind: str, **options: Any) -> Any:
    return (RoboMeter if kind == "robometer" else OnnxVlm)(folder, Options(context=512, batch=1, prefixes=0, **options))


def refused(folder: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> str:
    """By the engine and by the command, in the same words."""
    with pytest.raises(IntegrityError) as raised:
        opened(folder, kind)
    capsys.readouterr()
    assert main(["models", "verify", str(folder)]) == 4
    said = capsys.readouterr()
    assert str(raised.value) in said.out
    assert said.err == ""
    return str(raised.value)


def test_a_sound_model_opens(samples: Samples) -> None:
    assert opened(samples.model("qwen3-vl"), "qwen3-vl").name.startswith("qwen3-vl-0-fp32-fp32@")
    assert opened(samples.model("robometer"), "robometer").max_batch == 1


@ENGINES
def test_every_file_is_vouched_for(samples: Samples, kind: str) -> None:
    assert {*read_manifest(samples.model(kind)).files, "manifest.json"} == set(FILES)


@pytest.mark.parametrize("name", FILES)
@ENGINES
def test_a_changed_byte(
    samples: Samples, kind: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = samples.copy(tmp_path / "m", kind) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert str(path) in refused(tmp_path / "m", kind, capsys)


@pytest.mark.parametrize("name", FILES[:-1])
def test_a_missing_file_and_one_that_is_longer(
    samples: Samples, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = samples.copy(tmp_path / "m", "qwen3-vl") / name
    with path.open("ab") as file:
        file.write(b"\n")
    assert f"'{path}' should have" in refused(tmp_path / "m", "qwen3-vl", capsys)
    path.unlink()
    assert f"'{path}' should be there by the manifest" in refused(tmp_path / "m", "qwen3-vl", capsys)


@ENGINES
def test_a_link_that_leaves_the_folder(
    samples: Samples, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even to the very same bytes: tomorrow they may be others."""
    path = samples.copy(tmp_path / "m", kind) / "decoder.onnx.data"
    shutil.move(path, tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "a link that leads out of the folder" in refused(tmp_path / "m", kind, capsys)


def test_a_graph_that_nobody_vouches_for(samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = samples.copy(tmp_path / "m", "qwen3-vl")
    shutil.copy(folder / "decoder.onnx", folder / "other.onnx")
    assert "other.onnx" in refused(folder, "qwen3-vl", capsys)


@ENGINES
def test_another_format(samples: Samples, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = samples.copy(tmp_path / "m", kind)
    forge(folder, format=2)
    assert "has format 2, newer than the format 1" in refused(folder, kind, capsys)


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("qwen3-vl", "features"),
        ("qwen3-vl", "logits"),
        ("qwen3-vl", "next_logits"),
        ("qwen3-vl", "ids"),
        ("robometer", "features"),
        ("robometer", "progress"),
        ("robometer", "success"),
    ],
)
def test_a_golden_that_does_not_match(
    samples: Samples, kind: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every file is right, and what runs them gives another answer."""
    folder = samples.copy(tmp_path / "m", kind)
    golden = json.loads((folder / "manifest.json").read_text())["golden"]
    if part == "ids":
        golden["ids"][3] += 1
    else:
        golden["values"][part][-1] += 0.5
    forge(folder, golden=golden)
    told = refused(folder, kind, capsys)
    assert "has the right files and gives another answer" in told
    assert opened(folder, kind, self_test=False).manifest.golden == golden  # who asks for it may skip the question


def test_a_golden_of_another_shape(samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for changes in (
        {"values": {}},
        {"values": {"features": [], "logits": [], "next_logits": []}},
        {"values": 1},
        {"tolerance": 1.0},
        {"tolerance": {"features": 1.0}},
    ):
        shutil.rmtree(tmp_path / "m", ignore_errors=True)
        folder = samples.copy(tmp_path / "m", "qwen3-vl")
        golden = json.loads((folder / "manifest.json").read_text())["golden"]
        forge(folder, golden={**golden, **changes})
        assert "gives another answer" in refused(folder, "qwen3-vl", capsys)


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
@pytest.mark.parametrize("kind", ["qwen3-vl", "qwen3.5", "qwen2.5-vl", "robometer"])
def test_a_runtime_that_computes_nonsense(
    samples: Samples, kind: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finite numbers of the right size, and all of them wrong: each token gets the vector of another."""
    folder, run = samples.model(kind, decoder=precision), Decoder.run
    opened(folder, kind)

    def nonsense(decoder: Decoder, row: int, lengths: Any, embeddings: Any, *more: Any) -> Any:
        return run(decoder, row, lengths, np.roll(embeddings, 1, axis=2), *more)

    monkeypatch.setattr(Decoder, "run", nonsense)
    found = self_test(folder)
    assert found.worst > 3 * found.tolerance
    with pytest.raises(IntegrityError, match="gives another answer"):
        opened(folder, kind)


def test_each_engine_takes_its_own_kind(samples: Samples) -> None:
    with pytest.raises(UsageError, match=r"answers questions .* was expected, and '.*' scores progress"):
        OnnxVlm(samples.model("robometer"))
    with pytest.raises(UsageError, match=r"scores progress was expected, and '.*' answers questions"):
        RoboMeter(samples.model("qwen3-vl"))
    with pytest.raises(UsageError, match=r"is no exported model.*compass-edge models export"):
        OnnxVlm(samples.checkpoint("qwen3-vl"))
    with pytest.raises(UsageError, match="There is no model 'nobody'"):
        OnnxVlm("nobody")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"architecture": {}}, "architecture cannot be read"),
        ({"preprocessing": {"patch": 16}}, "preprocessing"),
        ({"tokenizer": {}}, "names no tokenizer"),
        ({"tokenizer": {"folder": "../elsewhere"}}, "names no tokenizer"),
    ],
)
def test_a_manifest_that_means_nothing(
    samples: Samples, tmp_path: Path, change: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = samples.copy(tmp_path / "m", "qwen3-vl")
    forge(folder, **change)
    assert told in refused(folder, "qwen3-vl", capsys)


def test_a_graph_of_another_model(samples: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest was written anew for it: the files are vouched for, and do not fit each other."""
    folder = samples.copy(tmp_path / "m", "qwen3-vl")
    for name in ("decoder.onnx", "decoder.onnx.data"):
        shutil.copy(samples.model("robometer") / name, folder / name)
    records = {name: {"bytes": found.bytes, "sha256": found.sha256} for name, found in record_files(folder).items()}
    forge(folder, files=records)
    assert "they do not work together" in refused(folder, "qwen3-vl", capsys)
