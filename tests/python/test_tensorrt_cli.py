"""`compass-edge models build` as a person and a script meet it, and what the other commands say of engines."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from exported_samples import Samples
from tensorrt_samples import FP16, REAL, listed

from compass_edge.cli.main import main
from compass_edge.engines.manifest import read_manifest
from compass_edge.export.tensorrt import network

pytestmark = pytest.mark.tensorrt
SMALL = ("--frame", "128x96", "--frames", "2", "--words", "480")
Compass = Callable[..., Any]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture
def model(samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(tmp_path / "store"))
    monkeypatch.setenv("COMPASS_EDGE_ENGINE_CACHE", str(tmp_path / "cache"))
    return samples.copy(tmp_path / "store" / "meter", "robometer", **FP16)


@pytest.fixture
def compass(capsys: pytest.CaptureFixture[str]) -> Compass:
    def run(*arguments: str | Path) -> Any:
        capsys.readouterr()
        try:
            code = main(["models", *map(str, arguments)])
        except SystemExit as left:
            code = int(left.code or 0)
        caught = capsys.readouterr()
        return SimpleNamespace(code=code, out=caught.out, error=caught.err)

    return run


@REAL
def test_build_list_verify_remove(model: Path, compass: Compass) -> None:
    built = compass("build", "meter", "--target", "sm_86", "--target", "sm_120", *SMALL)
    assert built.code == 0, built.error
    assert "meter for sm_86 (RTX 30xx" in built.out
    assert "up to 2 frames of 48 patches" in built.out
    assert "self-test not run, no such chip is here" in built.out
    assert "Next: compass-edge models verify meter" in built.out
    again = compass("build", "meter", "--target", "sm_86", "--json", *SMALL)
    document = json.loads(again.out)["built"][0]
    assert (document["target"], document["cached"], document["self_test"]) == ("sm_86", ["vision", "decoder"], None)
    assert {engine["part"] for engine in document["engines"]} == {"vision", "decoder"}
    assert "sm_86, sm_120" in compass("list").out
    assert len(json.loads(compass("list", "--json").out)["models"][0]["engines"]) == 4
    verified = compass("verify", "meter")
    assert verified.code == 0
    assert "decoder for sm_120 by tensorrt-rtx" in verified.out
    name = next(iter(read_manifest(model).engines))
    (model / name).write_bytes((model / name).read_bytes()[:-1] + b"?")
    refused = compass("verify", "meter", "--json")
    assert refused.code == 4
    assert "Build it again" in json.loads(refused.out)["models"][0]["fault"]
    assert compass("remove", "meter", "--yes").code == 0
    assert not model.exists()


@REAL
def test_ctrl_c_leaves_a_whole_manifest(model: Path, compass: Compass, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (model / "manifest.json").read_bytes()
    build = network.Network.build

    def stopped(self: network.Network, *arguments: Any, **settings: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return build(self, *arguments, **settings)

    with monkeypatch.context() as during:
        during.setattr(network.Network, "build", stopped)
        done = compass("build", "meter", "--target", "sm_86", *SMALL)
    assert done.code == 130
    assert (model / "manifest.json").read_bytes() == before
    assert compass("build", "meter", "--target", "sm_86", *SMALL).code == 0


def test_a_jetson_needs_no_onnx_to_build() -> None:
    """Nor yaml, torch or transformers: graphs are read by TensorRT itself."""
    hidden = "; ".join(f"sys.modules['{name}'] = None" for name in ("onnx", "yaml", "torch", "transformers"))
    program = f"import sys; {hidden}; import compass_edge.export.tensorrt.build, compass_edge.engines.tensorrt.load"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_help_teaches(compass: Compass) -> None:
    shown = compass("build", "--help")
    assert shown.code == 0
    for word in (
        "sm_87",
        "Jetson Orin",
        "built on the device itself",
        "built anywhere",
        "--dialect standard",
        "Ctrl-C",
    ):
        assert word in shown.out


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--target", "sm_90"), 2, "A target is one of"),
        (("--target", "sm_86", "--precision", "fp8"), 2, "has no FP8"),
        (("--target", "sm_86", "--frame", "wide"), 2, "a size is WIDTHxHEIGHT"),
        (("--target", "sm_86", "--frames", "65"), 2, "frames must be a whole number from 1 to 64"),
        ((), 2, "Say for which chip with --target"),
    ],
)
def test_wrong_usage(compass: Compass, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = compass("build", "meter", *arguments)
    assert (done.code, said in done.error) == (code, True)


def test_a_stale_engine_makes_verify_fail(model: Path, compass: Compass) -> None:
    listed(model, graph="0" * 64)
    done = compass("verify", "meter", "--no-self-test")
    assert done.code == 4
    assert "was made from another " in done.out
    assert "compass-edge models build meter --target sm_86" in done.out
