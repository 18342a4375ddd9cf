"""TensorRT Edge-LLM's commands in both spellings, what a board's checkpoint is made into, and what it is calibrated on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from edgellm_samples import small_checkpoint, write_pictures

from compass_edge.boards.board import BOARDS, find_board
from compass_edge.engines.edgellm.command_line import CommandLine, ServerLimits
from compass_edge.engines.edgellm.readiness import installed_command_line
from compass_edge.errors import UsageError
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.edgellm.calibration import gather
from compass_edge.export.edgellm.recipe import Recipe, check_family, has_mtp, recipe_for

pytestmark = pytest.mark.tensorrt

_LIMITS = ServerLimits(2048, 4096, 1024, 1 << 20)


def test_the_commands_of_0_11_0() -> None:
    told = CommandLine("0.11.0")
    assert shlex.join(told.quantize("A", "B", "nvfp4", "nvfp4")) == (
        "tensorrt-edgellm-quantize llm --model_dir A --output_dir B --quantization nvfp4 --lm_head_quantization nvfp4"
    )
    assert told.quantize("A", "B", "int4_awq")[-1] == "int4_awq"
    assert shlex.join(told.export("B", "C", mtp=True)) == "tensorrt-edgellm-export B C --mtp"
    assert told.export("B", "C", externalize=["int4_ffn"])[3:] == ["--externalize-weights", "int4_ffn"]
    assert shlex.join(told.build("B", "E", ServerLimits(), mtp=True)) == (
        "tensorrt-edgellm-build --model-dir B --engine-dir E --max-input-len 2048 --max-kv-cache-capacity 4096 --spec-type mtp"
    )
    assert told.serve("B", "Qwen3.5-9B", 8001, _LIMITS, mtp=True, reuse=True, cache="K") == [
        "tensorrt-edgellm-serve", "B", "--served-model-name", "Qwen3.5-9B", "--max-input-len", "2048",
        "--max-kv-cache-capacity", "4096", "--max-image-tokens", "1024", "--port", "8001",
        "--speculative-config", '{"method":"mtp","num_speculative_tokens":3}', "--enable-context-reuse",
        "--context-cache-recurrent-snapshot-pool-bytes", "1048576", "--cache-dir", "K", "--host", "127.0.0.1",
    ]  # fmt: skip


def test_0_11_1_has_one_program() -> None:
    told = CommandLine("0.11.1")
    assert shlex.join(told.quantize("A", "B", "nvfp4", "nvfp4")) == (
        "trtedge quantize llm --model-dir A --output-dir B --quantization nvfp4 --lm-head-quantization nvfp4"
    )
    old = CommandLine("0.11.0")
    for one, other in (
        (told.export("B", "C"), old.export("B", "C")),
        (told.build("B", "E", _LIMITS), old.build("B", "E", _LIMITS)),
        (told.serve("B", "M", 1, _LIMITS), old.serve("B", "M", 1, _LIMITS)),
    ):
        assert one[0] == "trtedge"
        assert other[0] == f"tensorrt-edgellm-{one[1]}"
        assert one[2:] == other[1:]


@pytest.mark.parametrize("version", ["0.11.0", "0.11.1", "0.11.9.dev1"])
def test_no_server_listens_beyond_this_computer(version: str) -> None:
    words = CommandLine(version).serve("B", "M", 8001, ServerLimits())
    assert words[words.index("--host") + 1] == "127.0.0.1"


@pytest.mark.parametrize("version", ["0.10.0", "0.12.0", "1.0", "", "newest"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=r"known for versions 0\.11\.x, and .* came"):
        CommandLine(version)


def test_without_edgellm_the_tables_version_is_taken() -> None:
    assert installed_command_line().version.startswith("0.11.")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return small_checkpoint(tmp_path / "qwen3.5", "qwen3.5")


@pytest.mark.parametrize(
    ("board", "recipe"),
    [
        ("orin-nano-8", Recipe("int4_awq", "int4_awq", externalize=("int4_ffn",))),
        ("orin-nx-16", Recipe("int4_awq", externalize=("int4_ffn",))),
        ("orin-agx-64", Recipe("int4_awq", externalize=("int4_ffn",))),
        ("thor", Recipe("nvfp4", "nvfp4")),
        ("spark", Recipe("nvfp4", "nvfp4")),
        ("x86-rtx-24", Recipe("int4_awq")),
    ],
)
def test_every_board_has_its_recipe(board: str, recipe: Recipe, checkpoint: Checkpoint) -> None:
    assert recipe_for(find_board(board), checkpoint) == recipe


def test_recipes_that_a_board_cannot_compute_are_refused(checkpoint: Checkpoint) -> None:
    for board in ("orin-nano-8", "orin-agx-64"):
        for precision in ("fp8", "nvfp4"):
            with pytest.raises(UsageError, match=rf"computes in .*, and {precision} was asked for.*int4-awq"):
                recipe_for(BOARDS[board], checkpoint, precision)
    assert recipe_for(BOARDS["thor"], checkpoint, "fp8") == Recipe("fp8")
    assert recipe_for(BOARDS["x86-rtx-12"], checkpoint, "nvfp4").quantization == "nvfp4"  # RTX 50xx
    with pytest.raises(UsageError, match=r"the board cpu is without one.*models export"):
        recipe_for(BOARDS["cpu"], checkpoint)
    with pytest.raises(UsageError, match=r"quantizes to int4-awq, nvfp4, fp8, and 'int8' came"):
        recipe_for(BOARDS["thor"], checkpoint, "int8")


class _Declared:
    def __init__(self, layers: int, *names: str) -> None:
        self.config: dict[str, Any] = {"text_config": {"mtp_num_hidden_layers": layers}}
        self._names = names

    def names(self) -> tuple[str, ...]:
        return self._names


@pytest.mark.parametrize(
    ("found", "there"),
    [
        (_Declared(1, "mtp.fc.weight"), True),
        (_Declared(1, "lm_head.weight"), False),
        (_Declared(0, "mtp.fc.weight"), False),
    ],
)
def test_a_draft_layer_must_be_declared_and_there(found: Any, there: bool) -> None:
    assert has_mtp(found) is there
    assert recipe_for(find_board("thor"), found).mtp is there
    assert not recipe_for(find_board("spark"), found).mtp


def test_other_families_are_sent_where_they_belong(tmp_path: Path) -> None:
    assert check_family(small_checkpoint(tmp_path / "good")) == "qwen3_vl"
    with pytest.raises(UsageError, match=r"must be a checkpoint of qwen3_vl or qwen3_5, and its config.json says"):
        check_family(small_checkpoint(tmp_path / "old", "qwen2.5-vl"))


def test_a_checkpoint_that_brings_code_is_refused(tmp_path: Path) -> None:
    """NVIDIA's tools would run it."""
    checkpoint = small_checkpoint(tmp_path)
    (tmp_path / "modeling.py").write_text("print('owned')")
    with pytest.raises(UsageError, match=r"brings code of its own \(modeling\.py\), which NVIDIA's tools would run"):
        check_family(checkpoint)
    (tmp_path / "modeling.py").unlink()
    (tmp_path / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["x--y.Z", null]}}')
    with pytest.raises(UsageError, match=r"auto_map in tokenizer_config\.json"):
        check_family(checkpoint)


# Calibration


def test_a_folder_of_pictures_is_taken_as_it_lies(tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "frames", 9)
    made = gather(str(folder), tmp_path / "unused", 3)
    assert [sample.picture.name for sample in made.samples] == ["00.png", "04.png", "08.png"]
    assert not (tmp_path / "unused").exists()
    assert gather(str(folder), tmp_path, 99).samples[-1].picture.name == "08.png"
    assert gather(str(folder), tmp_path, 1).samples[0].picture.name == "04.png"
    digest = made.digest
    (folder / "04.png").write_bytes((folder / "05.png").read_bytes())
    assert made.digest != digest


def test_an_episode_is_written_out_once(tmp_path: Path) -> None:
    made = gather(None, tmp_path / "calibration", 7)
    assert made.source == "bundled"
    assert len(made.samples) == 7
    assert all(sample.picture.is_file() for sample in made.samples)
    assert len({sample.text for sample in made.samples}) > 2  # the sentences of their steps
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "calibration").iterdir()}
    again = gather("bundled", tmp_path / "calibration", 7)
    assert again == made
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "calibration").iterdir()}
    made.samples[0].picture.unlink()
    assert len(gather(None, tmp_path / "calibration", 7).samples) == 7
    assert json.loads((tmp_path / "calibration" / "calibration.json").read_text())["source"] == "bundled"


def test_frames_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is nothing at"):
        gather(str(tmp_path / "nowhere"), tmp_path / "c")
    with pytest.raises(UsageError, match=r"at least one frame, and 0 were asked for"):
        gather(None, tmp_path / "c", 0)
