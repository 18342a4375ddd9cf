"""TensorRT Edge-LLM's own quantizer and exporter on a CPU, through our adapter, in the environment that it makes.

About four minutes with the environment's installation, two without: CI runs them. COMPASS_EDGE_EDGELLM says where it is kept.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from edgellm_samples import thor_machine
from tokenizer_samples import write_byte_tokenizer

from compass_edge.cli.main import main
from compass_edge.engines.edgellm import in_process
from compass_edge.engines.edgellm.command_line import CommandLine, ServerLimits
from compass_edge.engines.edgellm.launch import Launch
from compass_edge.engines.openai.body import request_body
from compass_edge.errors import CompassError
from compass_edge.export.edgellm.build import build_engines
from compass_edge.export.edgellm.environment import PINS, Environment, check_packages, make_environment
from compass_edge.export.safetensors_file import SafetensorsFile
from compass_edge.models import Image, Question

pytestmark = [
    pytest.mark.tensorrt,
    pytest.mark.skipif(
        not os.environ.get("CI"),
        reason="installs 2 GB and runs for minutes: set CI=true to run TensorRT Edge-LLM's own tools",
    ),
]

Ops = dict[str, int]
_FP4 = "trt::TRT_FP4DynamicQuantize"
_INT4 = "trt_edgellm::Int4GroupwiseGemmPluginV2"
_HYBRID = {"trt_edgellm::causal_conv1d", "trt_edgellm::gated_delta_net"}


@pytest.fixture(scope="module")
def environment() -> Environment:
    made = make_environment()
    assert set(check_packages(made)) == {pin.split("==")[0] for pin in PINS}
    return made


@pytest.fixture(scope="module")
def checkpoints(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    script = Path(__file__).with_name("edgellm_checkpoints.py")
    made = {}
    for name, words in {"qwen3-vl": ["qwen3-vl"], "qwen3.5": ["qwen3.5"], "qwen3.5-mtp": ["qwen3.5", "mtp"]}.items():
        folder = write_byte_tokenizer(tmp_path_factory.mktemp("checkpoints") / name)
        subprocess.run([environment.python, script, folder, *words], check=True, capture_output=True, timeout=300)
        made[name] = folder
    return made


def operators(path: Path) -> Ops:
    nodes = onnx.load(path, load_external_data=False).graph.node
    return collections.Counter(f"{node.domain}::{node.op_type}".removeprefix("::") for node in nodes)


def converted(
    checkpoint: Path, out: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[dict[str, Any], dict[str, Ops]]:
    assert (
        main(["models", "edgellm", str(checkpoint), str(out), "--samples", "2", "--device", "cpu", "--json", *options])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert all(step["made"] for step in told["steps"].values())
    return told, {path.parent.name: operators(path) for path in (out / "onnx").rglob("model.onnx")}


def quantization(out: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((out / "quantized" / "hf_quant_config.json").read_text())["quantization"]
    return told


@pytest.mark.parametrize("family", ["qwen3-vl", "qwen3.5-mtp"])
def test_int4_awq_for_orin(
    family: str, checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, graphs = converted(checkpoints[family], tmp_path, capsys, "--board", "orin-agx-64")
    told = quantization(tmp_path)
    assert (told["quant_algo"], told["group_size"], told["pre_quant_scale"]) == ("W4A16_AWQ", 128, True)
    assert {"lm_head", "model.visual*"} < set(told["exclude_modules"])
    assert graphs["llm"][_INT4] >= 13
    assert (set(graphs["llm"]) >= _HYBRID) == (family == "qwen3.5-mtp")
    assert graphs["visual"]["trt_edgellm::ViTAttentionPlugin"] == 1
    assert (tmp_path / "onnx" / "llm" / "external_int4_ffn_weights.safetensors").is_file()


def test_nvfp4_for_thor(checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, graphs = converted(checkpoints["qwen3-vl"], tmp_path, capsys, "--board", "thor")
    assert told["recipe"]["mtp"] is False
    assert (quantization(tmp_path)["quant_algo"], quantization(tmp_path)["group_size"]) == ("NVFP4", 16)
    assert graphs["llm"][_FP4] > 0
    assert graphs["llm"]["trt_edgellm::AttentionPlugin"] == 2
    assert set(graphs) == {"llm", "visual"}


def test_nvfp4_with_the_draft_layer_for_thor(
    checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, graphs = converted(checkpoints["qwen3.5-mtp"], tmp_path, capsys, "--board", "thor")
    assert told["recipe"] == {"quantization": "nvfp4", "head": "nvfp4", "mtp": True, "externalize": []}
    assert set(graphs) == {"llm", "mtp_draft", "visual"}
    assert set(graphs["llm"]) >= {_FP4, *_HYBRID}
    assert graphs["mtp_draft"][_FP4] > 0
    tensors = SafetensorsFile(tmp_path / "quantized" / "model.safetensors").tensors
    assert tensors["mtp.layers.0.mlp.down_proj.weight"].dtype == "U8"  # two weights a byte


@pytest.mark.parametrize("family", ["qwen3-vl", "qwen3.5"])
def test_fp8(family: str, checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, graphs = converted(checkpoints[family], tmp_path, capsys, "--board", "thor", "--precision", "fp8")
    assert quantization(tmp_path)["quant_algo"] == "FP8"
    assert graphs["llm"]["QuantizeLinear"] > 0
    assert graphs["llm"]["DequantizeLinear"] > graphs["llm"]["QuantizeLinear"]
    tensors = SafetensorsFile(tmp_path / "quantized" / "model.safetensors").tensors
    assert tensors["model.language_model.layers.1.mlp.down_proj.weight"].dtype == "F8_E4M3"
    scale = tensors["model.language_model.layers.1.mlp.down_proj.input_scale"]
    assert scale.shape == ()  # of the activations, as our frames made them


# What Edge-LLM's own code makes of our command, our request and our calls; no GPU is asked for.
_UNDERSTOOD = """
import inspect, json, sys
from experimental.server import LLM, ContextCacheConfig, SamplingParams
from experimental.server.api.protocol import ChatCompletionRequest
from experimental.server.config import parse_server_config
words, body, options, sampling, reuse = json.load(sys.stdin)
config = parse_server_config(words)
request = ChatCompletionRequest(**body)
inspect.signature(LLM).bind("checkpoint", **options)
SamplingParams(**sampling)
ContextCacheConfig(**reuse)
print(json.dumps({"host": config.api.host, "name": config.api.served_model_name, "reuse": config.model.context_cache_config.enabled,
    "method": config.model.speculative_config.method, "thinking": request.enable_thinking, "format": request.response_format}))
"""


def test_edgellm_understands_what_it_is_told(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = Launch(tmp_path, "Qwen3.5-9B", mtp=True)
    words = launch.words(CommandLine(check_packages(environment)["tensorrt-edgellm"]))[1:]
    picture = Image("d", np.zeros((32, 32, 3), np.uint8))
    asked = Question(("look: ", picture), {"type": "object", "properties": {}}, 9)
    noted: dict[str, Any] = {}

    class Noting:
        SamplingParams = staticmethod(lambda **values: noted.setdefault("sampling", values))
        ContextCacheConfig = staticmethod(lambda **values: noted.setdefault("reuse", values))

        def LLM(self, _checkpoint: str, **values: Any) -> Noting:  # noqa: N802
            noted["options"] = values
            return self

        def generate_stream(self, *_: Any) -> Any:
            raise RuntimeError("enough")

    monkeypatch.setattr(in_process, "edgellm_api", Noting)
    with pytest.raises(CompassError, match="enough"):
        model = in_process.InProcessEdgeLlm(launch, thor_machine(tmp_path / "thor"))
        model.ask([asked], lambda *_: None, lambda: False)
    body = json.loads(request_body(launch.endpoint, asked))
    given = json.dumps([words, body, noted["options"], noted["sampling"], noted["reuse"]])
    done = subprocess.run(
        [environment.python, "-c", _UNDERSTOOD], input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["host"], told["name"], told["method"]) == ("127.0.0.1", "Qwen3.5-9B", "mtp")
    assert (told["reuse"], told["thinking"], told["format"]["type"]) == (True, False, "json_schema")


def test_the_builder_runs_up_to_where_it_needs_tensorrt(
    environment: Environment, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(CompassError, match=r"Edge-LLM's builder failed with exit code 1\. It said: .*TensorRT"):
        build_engines(
            checkpoints["qwen3-vl"], tmp_path / "engines", ServerLimits(), programs=environment.folder / "bin",
            machine=thor_machine(tmp_path / "thor"),
        )  # fmt: skip
    assert not (tmp_path / "engines").exists()


def test_calibrated_on_frames_of_ones_own_and_resumed(
    checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from compass_edge.data.bundled import BUNDLED

    film = next(path for path in sorted(BUNDLED.rglob("*.mp4")))
    options = ["--board", "thor", "--frames", str(film), "--only", "quantize"]
    told, _ = converted(checkpoints["qwen3.5"], tmp_path, capsys, *options)
    assert told["steps"]["quantized"]["algorithm"] == "NVFP4"
    words = ["models", "edgellm", str(checkpoints["qwen3.5"]), str(tmp_path), "--samples", "2", "--json", *options]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["steps"]["quantized"]["made"] is False
    assert len(list((tmp_path / "calibration").glob("*.png"))) == 2
