"""Presets of boards: the budget before anything else, then what is missing, with the command that makes it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from board_samples import no_gpu, orin, rtx, thor
from exported_samples import Samples
from openai_samples import Start

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import BOARDS
from compass_edge.boards.budget import budget_of
from compass_edge.boards.machine import Machine
from compass_edge.boards.part import Part
from compass_edge.boards.probe import probe
from compass_edge.engines.openai.model import OpenAiModel
from compass_edge.errors import EnvironmentFault, UsageError
from compass_edge.presets import board_models
from compass_edge.presets.board_models import chosen_arrangement, endpoint_of, names, open_models
from compass_edge.presets.boards import BOARD_PRESETS
from compass_edge.presets.registry import PRESETS, find_preset

pytestmark = pytest.mark.tensorrt
pytest_plugins = ["openai_server"]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ARRANGEMENT", "PRM_ENGINE", "ORIENTER_URL", "VERIFIER_URL"):
        monkeypatch.delenv(f"COMPASS_EDGE_{name}", raising=False)
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(tmp_path / "store"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def served(monkeypatch: pytest.MonkeyPatch, *models: str) -> None:
    """As if those were answering."""

    def trouble(part: Part) -> str:
        return "" if part.model in models else "Nobody answers there."

    monkeypatch.setattr(board_models, "_server_trouble", trouble)


def roomy(machine: Machine) -> Machine:
    return replace(machine, memory=64 << 30, free=60 << 30)


def test_they_stand_beside_tiny_and_can_be_sent_to_another_process() -> None:
    assert list(PRESETS) == ["tiny", *BOARDS]
    for name, preset in BOARD_PRESETS.items():
        assert find_preset(name) is preset
        assert pickle.loads(pickle.dumps(preset)) == preset
        assert preset.settings(30.0).every == 10
        assert preset.about.startswith(BOARDS[name].about)


def test_another_machine_is_refused_first(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"and no NVIDIA GPU was found here\. Use the preset cpu\."):
        open_models("thor", machine=probe(no_gpu(tmp_path)))
    with pytest.raises(EnvironmentFault, match=r"Orin with 30\.7 GiB came\. Use the preset orin-agx-32\."):
        open_models("orin-agx-64", machine=probe(orin(tmp_path / "orin", memory=32)))


def test_memory_that_is_not_free_is_said_before_anything_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(monkeypatch)
    machine = replace(probe(orin(tmp_path)), free=25_000_000_000)
    with pytest.raises(EnvironmentFault) as caught:
        open_models("orin-agx-64", machine=machine)
    said = str(caught.value)
    assert "needs 40.52 GB, and there is 25.00 GB of free memory: 15.52 GB too little." in said
    assert "What fits is '9b'" in said
    monkeypatch.setenv("COMPASS_EDGE_ARRANGEMENT", "9b")
    with pytest.raises(EnvironmentFault, match=r"TensorRT Edge-LLM's server must serve Qwen3\.5-9B"):
        open_models("orin-agx-64", machine=machine)


def test_what_is_served_already_needs_no_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch, "Qwen3.5-9B", "Qwen3.5-27B")
    machine = replace(probe(orin(tmp_path)), free=12_000_000_000)
    with pytest.raises(EnvironmentFault, match="Robometer-4B must be in the store as 'Robometer-4B-fp16'"):
        open_models("orin-agx-64", machine=machine)


def test_what_another_computer_serves_needs_no_memory_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    machine = replace(probe(orin(tmp_path, memory=8, model="NVIDIA Jetson Orin Nano")), free=5_000_000_000)
    with pytest.raises(EnvironmentFault, match="too little"):
        open_models("orin-nano-8", machine=machine)
    monkeypatch.setenv("COMPASS_EDGE_ORIENTER_URL", "https://fleet.example/v1")
    with pytest.raises(
        EnvironmentFault, match=r"must serve Qwen3.5-0.8B for the orienter and the verifier at https://fleet"
    ):
        open_models("orin-nano-8", machine=machine)


def test_a_machine_that_does_not_tell_its_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    machine = replace(probe(no_gpu(tmp_path)), memory=None, troubles=("It is hidden.",))
    with pytest.raises(EnvironmentFault, match=r"must be known before models are loaded.* It is hidden\."):
        open_models("cpu", machine=machine)


def test_a_server_that_is_not_there_comes_with_its_command(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        open_models("thor", machine=probe(thor(tmp_path, jetpack="7.2")))
    said = str(caught.value)
    assert "must serve Qwen3.5-9B for the verifier at http://127.0.0.1:8002/v1, and does not: The server at" in said
    assert "`compass-edge models edgellm Qwen3.5-9B Qwen3.5-9B-nvfp4 --board thor --only quantize`" in said
    assert (
        "tensorrt-edgellm-serve Qwen3.5-9B-nvfp4/quantized --served-model-name Qwen3.5-9B --max-input-len 2048" in said
    )
    assert "--host 127.0.0.1" in said
    assert '--speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'' in said


def test_a_card_without_a_payload_is_told_to_use_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(monkeypatch)
    with pytest.raises(EnvironmentFault) as caught:
        open_models("x86-rtx-24", machine=probe(rtx(tmp_path, "NVIDIA GeForce RTX 4090", "8.9", 24564)))
    said = str(caught.value)
    assert "has no payload for sm_89 (RTX 40xx, RTX Ada and L4)" in said
    assert "vllm serve Qwen3.5-9B-int4-awq --served-model-name Qwen3.5-9B --max-model-len 4096" in said
    assert "--gpu-memory-utilization 0.39" in said  # 10.01 of 25.77 GB
    with pytest.raises(EnvironmentFault, match="tensorrt-edgellm-serve"):
        open_models("x86-rtx-24", machine=probe(rtx(tmp_path / "30", "NVIDIA GeForce RTX 3090", "8.6", 24576)))


def test_a_model_that_is_not_exported_comes_with_its_command(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        open_models("cpu", machine=probe(no_gpu(tmp_path)))
    assert (
        "Make it with `compass-edge models export Robometer-4B --precision int4 --embedding int8 --name Robometer-4B-int4`."
        in str(caught.value)
    )
    with pytest.raises(EnvironmentFault, match=r"models export Qwen3-VL-2B-Instruct .* --name Qwen3-VL-2B-int4"):
        names("cpu")


def test_the_cpus_preset_opens_what_is_in_the_store(tmp_path: Path, samples: Samples) -> None:
    store = tmp_path / "store"
    samples.copy(store / "Robometer-4B-int4", "robometer")
    samples.copy(store / "Qwen3-VL-2B-int4", "qwen3-vl")
    machine = roomy(probe(no_gpu(tmp_path / "root")))
    models = open_models("cpu", 1, machine)
    assert models.orienter is models.verifier
    assert models.names() == names("cpu")
    options = models.orienter.body.options  # type: ignore[attr-defined]
    assert (options.threads, options.context, options.batch, options.prefixes) == (1, 2048, 1, 1)
    assert options.vision_bytes == 8 * 300 * 2048 * 4 * 4


def test_served_models_and_a_progress_model_on_onnx_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: Samples
) -> None:
    served(monkeypatch, "Qwen3.5-9B", "Qwen3.5-27B")
    monkeypatch.setenv("COMPASS_EDGE_PRM_ENGINE", "onnx")
    samples.copy(tmp_path / "store" / "Robometer-4B-fp16", "robometer")
    models = open_models("orin-agx-64", 1, probe(orin(tmp_path / "root")))
    assert isinstance(models.orienter, OpenAiModel)
    assert isinstance(models.verifier, OpenAiModel)
    assert models.orienter.endpoint.url == "http://127.0.0.1:8001/v1"
    assert models.verifier.endpoint.url == "http://127.0.0.1:8002/v1"
    assert models.names() == names("orin-agx-64")


def test_a_server_that_answers_is_asked_for_its_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: Samples, start: Start
) -> None:
    right, wrong = start(models=("Qwen3.5-4B",)), start(models=("Qwen3.5-2B",))
    monkeypatch.setenv("COMPASS_EDGE_PRM_ENGINE", "onnx")
    samples.copy(tmp_path / "store" / "Robometer-4B-int4-fp16", "robometer")
    machine = probe(rtx(tmp_path / "root", "NVIDIA GeForce RTX 5080", "12.0", 16303))
    monkeypatch.setenv("COMPASS_EDGE_ORIENTER_URL", wrong.url)
    with pytest.raises(EnvironmentFault, match=r"was to serve the model 'Qwen3.5-4B', and it serves: Qwen3.5-2B"):
        open_models("x86-rtx-12", 1, machine)
    monkeypatch.setenv("COMPASS_EDGE_ORIENTER_URL", right.url)
    models = open_models("x86-rtx-12", 1, machine)
    assert models.orienter is models.verifier
    assert isinstance(models.orienter, OpenAiModel)
    assert models.names() == names("x86-rtx-12")


def test_engines_that_cannot_run_here_are_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: Samples
) -> None:
    served(monkeypatch, "Qwen3.5-9B", "Qwen3.5-27B")
    samples.copy(tmp_path / "store" / "Robometer-4B-fp16", "robometer")
    with pytest.raises(EnvironmentFault, match=r"Robometer-4B is to run on TensorRT, and cannot: .*PRM_ENGINE=onnx"):
        open_models("orin-agx-64", 1, probe(orin(tmp_path / "root")))
    with pytest.raises(
        EnvironmentFault, match=r"must have engines for sm_87, and has none.*models build .* --target sm_87"
    ):
        names("orin-agx-64")


def test_engines_that_load_score_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: Samples) -> None:
    from compass_edge.engines.onnx.load import load as load_graphs
    from compass_edge.engines.tensorrt import load as engines

    served(monkeypatch, "Qwen3.5-9B", "Qwen3.5-27B")
    samples.copy(tmp_path / "store" / "Robometer-4B-fp16", "robometer")
    monkeypatch.setattr(engines, "load", lambda folder, options: load_graphs(folder, "prm", options))
    models = open_models("orin-agx-64", 1, probe(orin(tmp_path / "root")))
    assert models.prm.body.options.vision_bytes == 64 * 300 * 2560 * 4 * 2  # type: ignore[attr-defined]


def test_moving_the_progress_model_moves_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    board = BOARDS["orin-agx-64"]
    before = budget_of(board, chosen_arrangement(board))
    monkeypatch.setenv("COMPASS_EDGE_PRM_ENGINE", "onnx")
    after = budget_of(board, chosen_arrangement(board))
    # Another runtime, and keys and values of a sequence that are kept.
    assert after.need - before.need == 200_000_000 - 500_000_000 + 36 * 2 * 8 * 128 * 2560 * 2
    monkeypatch.setenv("COMPASS_EDGE_PRM_ENGINE", "abacus")
    with pytest.raises(UsageError, match="COMPASS_EDGE_PRM_ENGINE must be onnx or tensorrt, and 'abacus' came"):
        chosen_arrangement(board)


def test_an_arrangement_is_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_ARRANGEMENT", "27b-int4")
    arrangement = chosen_arrangement(BOARDS["orin-agx-32"])
    assert arrangement.part("orienter") is arrangement.part("verifier")
    assert endpoint_of(arrangement.part("verifier")).model == "Qwen3.5-27B"
    monkeypatch.setenv("COMPASS_EDGE_ARRANGEMENT", "everything")
    with pytest.raises(UsageError, match="orin-agx-32 has no arrangement 'everything'"):
        chosen_arrangement(BOARDS["orin-agx-32"])


def test_a_checkpoint_in_the_store_is_served_by_us_when_nobody_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: Samples
) -> None:
    from compass_edge.engines.edgellm import vlm

    monkeypatch.setenv("COMPASS_EDGE_PRM_ENGINE", "onnx")
    samples.copy(tmp_path / "store" / "Robometer-4B-fp16", "robometer")
    machine = probe(orin(tmp_path / "root"))
    with pytest.raises(EnvironmentFault, match=r"server must serve Qwen3.5-9B .* refused the connection"):
        open_models("orin-agx-64", 1, machine)
    parts = {part.roles[0]: part for part in preset_arrangement(BOARDS["orin-agx-64"]).parts}
    started: list[tuple[str, Path]] = []

    class Started:
        def __init__(self, part: Part, checkpoint: Path, _: object) -> None:
            started.append((part.roles[0], checkpoint))
            self.name = part.model

        def close(self) -> None:
            started.append((self.name, Path()))

    monkeypatch.setattr(vlm, "open_served", Started)
    stored = tmp_path / "store" / parts["orienter"].stored / "quantized"
    other = tmp_path / "elsewhere"
    for folder in (stored, other):
        folder.mkdir(parents=True)
    monkeypatch.setenv("COMPASS_EDGE_VERIFIER_CHECKPOINT", str(other))
    (stored / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"COMPASS_EDGE_VERIFIER_CHECKPOINT must name .* has no config.json"):
        open_models("orin-agx-64", 1, machine)
    assert not started
    (other / "config.json").write_text("{}")
    models = open_models("orin-agx-64", 1, machine)
    assert isinstance(models.orienter, Started)
    assert sorted(started) == [("orienter", stored), ("verifier", other)]
