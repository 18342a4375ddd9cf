"""Checkpoints that cannot become a model: a sentence that names the file and the tensor, an exit code, and nothing left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_samples import Tensors, write_sample
from tokenizer_samples import QWEN, write_byte_tokenizer

from compass_edge.cli.main import main

Refuse = Callable[..., str]
LAYER = "model.language_model.layers.1"


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Exports what is in `c`, which must fail with this code and in one line; the line."""

    def run(code: int, *options: str) -> str:
        out = tmp_path / "out"
        found = main(["models", "export", str(tmp_path / "c"), "--out", str(out), *options])
        caught = capsys.readouterr()
        assert found == code, caught.err
        assert caught.out == ""
        lines = [line for line in caught.err.splitlines() if line.startswith("compass-edge: ")]
        assert len(lines) == 1
        assert "Traceback" not in caught.err
        assert "Warning" not in caught.err
        assert not out.exists()
        return lines[0]

    return run


@pytest.fixture
def sample(tmp_path: Path) -> Callable[..., Path]:
    return lambda kind="qwen3-vl", **options: write_sample(kind, tmp_path / "c", **options)


def setting(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Changes one value of config.json; `...` removes it."""

    def change(config: dict[str, Any]) -> None:
        *parts, last = name.split(".")
        inner = config
        for part in parts:
            inner = inner[part]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value

    return change


# The architecture


def test_another_architecture(sample: Any, refuse: Refuse) -> None:
    folder = sample(config=setting("model_type", "llama"))
    told = refuse(2)
    assert f"'{folder / 'config.json'}' describes a model of type 'llama'" in told
    assert "qwen3_vl, qwen3_5, qwen2_5_vl" in told


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("qwen3-vl", "model_type", 5),
        ("qwen3-vl", "text_config", 3),
        ("qwen3-vl", "vision_config", None),
        ("qwen3-vl", "text_config.num_attention_heads", 0),
        ("qwen3-vl", "text_config.num_key_value_heads", 3),
        ("qwen3-vl", "text_config.hidden_size", True),
        ("qwen3-vl", "text_config.hidden_size", ...),
        ("qwen3-vl", "text_config.head_dim", "16"),
        ("qwen3-vl", "text_config.num_hidden_layers", 2.5),
        ("qwen3-vl", "text_config.rms_norm_eps", -1),
        ("qwen3-vl", "text_config.rms_norm_eps", float("nan")),
        ("qwen3-vl", "text_config.hidden_act", "gelu"),
        ("qwen3-vl", "text_config.use_sliding_window", True),
        ("qwen3-vl", "text_config.rope_parameters", [1]),
        ("qwen3-vl", "text_config.rope_parameters.rope_theta", float("inf")),
        ("qwen3-vl", "text_config.rope_parameters.rope_type", "yarn"),
        ("qwen3-vl", "text_config.rope_parameters.mrope_section", [3, 3]),
        ("qwen3-vl", "text_config.rope_parameters.mrope_section", [3, 3, 3]),
        ("qwen3-vl", "vision_config.hidden_act", "relu"),
        ("qwen3-vl", "vision_config.num_heads", 3),
        ("qwen3-vl", "vision_config.num_position_embeddings", 15),
        ("qwen3-vl", "vision_config.out_hidden_size", 32),
        ("qwen3-vl", "vision_config.deepstack_visual_indexes", "0"),
        ("qwen3-vl", "vision_config.deepstack_visual_indexes", [0, 5]),
        ("qwen3-vl", "vision_config.deepstack_visual_indexes", [0, 0]),
        ("qwen3-vl", "image_token_id", -1),
        ("qwen3-vl", "image_token_id", ...),
        ("qwen3-vl", "video_token_id", [1]),
        ("qwen3.5", "text_config.layer_types", ["linear_attention", "linear_attention"]),
        ("qwen3.5", "text_config.layer_types", ["full_attention"]),
        ("qwen3.5", "text_config.layer_types", ["full_attention", 7]),
        ("qwen3.5", "text_config.linear_num_key_heads", 3),
        ("qwen3.5", "text_config.linear_key_head_dim", ...),
        ("qwen2.5-vl", "vision_config.window_size", 13),
        ("qwen2.5-vl", "vision_config.window_size", 57),
        ("qwen2.5-vl", "vision_config.fullatt_block_indexes", ...),
        ("qwen2.5-vl", "vision_config.tokens_per_second", 0),
    ],
)
def test_values_of_the_config_that_make_no_model(sample: Any, refuse: Refuse, kind: str, name: str, value: Any) -> None:
    sample(kind, config=setting(name, value))
    told = refuse(2)
    assert "config.json" in told
    short = {"vision_config": "deepstack_visual_indexes", "vision_config.out_hidden_size": "vision tower",
             "vision_config.num_heads": "num_heads"}.get(name, name.rpartition(".")[2])  # fmt: skip
    assert short in told


@pytest.mark.parametrize(
    ("name", "value", "tensor"),
    [
        ("text_config.num_hidden_layers", 1, f"{LAYER}.input_layernorm.weight"),
        ("vision_config.deepstack_visual_indexes", [0], "model.visual.deepstack_merger_list.1.norm.weight"),
        ("text_config.num_hidden_layers", 3, "model.language_model.layers.2.input_layernorm.weight"),
        ("vision_config.depth", 3, "model.visual.blocks.2.norm1.weight"),
        ("text_config.intermediate_size", 96, "layers.0.mlp.gate_proj.weight"),
        ("text_config.num_attention_heads", 8, "layers.0.self_attn.q_proj.weight"),
        ("text_config.vocab_size", 600, "embed_tokens.weight"),
        ("vision_config.patch_size", 14, "patch_embed.proj.weight"),
        ("vision_config.spatial_merge_size", 4, "deepstack_merger_list.0.norm.weight"),
    ],
)
def test_a_config_of_another_model_names_the_tensor(
    sample: Any, refuse: Refuse, name: str, value: Any, tensor: str
) -> None:
    """Also one with fewer layers than there are: half a model would be exported in silence."""
    folder = sample(config=setting(name, value))
    told = refuse(2)
    assert tensor in told
    assert str(folder) in told


# The weights


@pytest.mark.parametrize(
    ("kind", "tensor"),
    [
        ("qwen3-vl", f"{LAYER}.mlp.down_proj.weight"),
        ("qwen3-vl", "model.visual.merger.linear_fc2.bias"),
        ("qwen3-vl", "lm_head.weight"),
        ("qwen3-vl", "model.language_model.embed_tokens.weight"),
        ("qwen3.5", "model.language_model.layers.0.linear_attn.A_log"),
        ("qwen2.5-vl", f"{LAYER}.self_attn.k_proj.bias"),
        ("robometer", "success_head.1.bias"),
    ],
)
def test_a_missing_tensor_is_named(sample: Any, refuse: Refuse, kind: str, tensor: str) -> None:
    def without(values: Tensors) -> None:
        del values[tensor]

    folder = sample(kind, tensors=without)
    told = refuse(2)
    assert tensor.removeprefix("model.language_model.embed") in told or "embed_tokens.weight" in told
    assert str(folder) in told


@pytest.mark.parametrize("kind", ["qwen3-vl", "robometer"])
@pytest.mark.parametrize("shape", [(), (300,), (300, 64, 1), (300, 63)])
def test_an_embedding_of_another_shape(sample: Any, refuse: Refuse, kind: str, shape: tuple[int, ...]) -> None:
    table = {"model.language_model.embed_tokens.weight": np.ones(shape, np.float32)}
    sample(kind, tensors=lambda values: values.update(table))
    assert "embed" in refuse(2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "tensor", [f"{LAYER}.mlp.up_proj.weight", "model.visual.blocks.0.norm1.bias", "lm_head.weight"]
)
def test_numbers_that_are_none(sample: Any, refuse: Refuse, tensor: str, value: float) -> None:
    def damaged(values: Tensors) -> None:
        values[tensor].flat[-1] = value

    folder = sample(tensors=damaged)
    told = refuse(2)
    assert f"'{tensor}' in '{folder}'" in told


def test_numbers_that_float16_does_not_have(sample: Any, refuse: Refuse) -> None:
    def grown(values: Tensors) -> None:
        values[f"{LAYER}.mlp.up_proj.weight"][5, 5] = 1e5

    sample(tensors=grown)
    told = refuse(2, "--precision", "fp16")
    assert "layers.1.mlp.up_proj' holds 1e+05, and float16 ends at 65504" in told


def test_a_model_that_overflows_in_float16(sample: Any, refuse: Refuse) -> None:
    """Each weight fits, and what they make does not."""

    def grown(values: Tensors) -> None:
        for name in ("up_proj", "down_proj"):
            values[f"{LAYER}.mlp.{name}.weight"] *= 3e4

    sample(tensors=grown)
    assert "at this precision (vision fp32, embedding fp16, decoder fp16) it overflows" in refuse(
        2, "--precision", "fp16"
    )


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_pickles_are_never_opened(sample: Any, refuse: Refuse, name: str) -> None:
    folder = sample()
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(b"cos\nsystem\n(S'touch /tmp/harm'\ntR.")
    told = refuse(2)
    assert f"'{folder / name}' is a pickle" in told


def test_shards_that_are_cut_missing_or_of_another_checkpoint(sample: Any, refuse: Refuse) -> None:
    folder = sample(shards=3)
    second = folder / "model-00002-of-00003.safetensors"
    whole = second.read_bytes()
    os.truncate(second, len(whole) - 100)
    told = refuse(4)
    assert f"'{second}' is truncated: the tensor '" in told
    os.truncate(second, 4)
    assert f"'{second}' has 4 bytes" in refuse(4)
    second.unlink()
    assert "names the shard model-00002-of-00003.safetensors" in refuse(4)
    second.write_bytes((folder / "model-00001-of-00003.safetensors").read_bytes())
    told = refuse(4)
    assert "is in model-00001-of-00003.safetensors and in model-00002-of-00003.safetensors" in told


# What lies beside the weights


def test_tokenizers(sample: Any, refuse: Refuse) -> None:
    folder = sample()
    tokenizer, about = folder / "tokenizer.json", folder / "tokenizer_config.json"
    kept = tokenizer.read_bytes(), about.read_bytes()
    tokenizer.unlink()
    assert str(tokenizer) in refuse(4)
    tokenizer.write_bytes(kept[0][:-9])
    assert f"{tokenizer} must be a tokenizer" in refuse(4)
    tokenizer.write_bytes(kept[0])
    about.unlink()
    assert f"{folder} must have a chat template" in refuse(4)
    about.write_bytes(kept[1])
    write_byte_tokenizer(folder, [*QWEN, *(f"<|{number}|>" for number in range(300))])
    assert f"The tokenizer in '{folder}' has 568 tokens and the model's embedding 512 rows" in refuse(2)
    write_byte_tokenizer(folder, QWEN[:3])
    assert f"{folder / 'tokenizer_config.json'} must write every text and image" in refuse(4)


@pytest.mark.parametrize("token", [257, 5, 9999])
def test_an_image_token_that_is_none_is_found_before_the_work(
    sample: Any, refuse: Refuse, token: int, tmp_path: Path
) -> None:
    folder = sample(config=setting("image_token_id", token))
    assert str(folder) in refuse(4)
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"patch_size": 14}, "patch_size is 14, and by config.json the tower has 16"),
        ({"merge_size": "2"}, "merge_size"),
        ({"temporal_patch_size": 1}, "temporal_patch_size"),
        ({"min_pixels": 1_000_000, "max_pixels": 100_000}, "at least 1000000 pixels and at most 100000"),
        ({"max_pixels": 1.5}, "max_pixels"),
        ({"size": {"shortest_edge": 0}}, "min_pixels"),
        ({"image_mean": [0.5, 0.5]}, "image_mean"),
        ({"image_std": [0, 0, 0]}, "standard deviation"),
    ],
)
def test_preprocessing_that_contradicts(sample: Any, refuse: Refuse, values: dict[str, Any], named: str) -> None:
    path = sample() / "preprocessor_config.json"
    path.write_text(json.dumps(values))
    told = refuse(2)
    assert str(path) in told
    assert named in told


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("a: [", 4, "must be YAML"),
        ("- 1", 4, "sections of an experiment"),
        ("\0", 4, "must be YAML"),
        ("data: {use_multi_image: false}", 2, "data.use_multi_image is False"),
        ("model: {use_per_frame_progress_token: false}", 2, "model.use_per_frame_progress_token"),
        ("loss: {progress_loss_type: l2}", 2, "loss.progress_loss_type is 'l2'"),
        ("loss: {progress_discrete_bins: 1}", 2, "loss.progress_discrete_bins"),
        ("loss: {progress_discrete_bins: ten}", 2, "loss.progress_discrete_bins"),
        ("loss: {progress_discrete_bins: '${loss.progress_discrete_bins}'}", 4, "refers to itself"),
        ("!!python/object/apply:os.system ['touch /tmp/harm']", 4, "must be YAML"),
    ],
)
def test_another_experiment_of_robometers(sample: Any, refuse: Refuse, text: str, code: int, named: str) -> None:
    path = sample("robometer") / "config.yaml"
    path.write_text(text)
    told = refuse(code)
    assert str(path) in told
    assert named in told


def test_bins_that_the_head_does_not_have(sample: Any, refuse: Refuse) -> None:
    path = sample("robometer") / "config.yaml"
    path.write_text("loss: {progress_discrete_bins: 7}")
    assert "progress_head.4.bias" in refuse(2)


def test_kinds_that_the_checkpoint_is_not(sample: Any, refuse: Refuse) -> None:
    sample()
    assert "has no tensor 'progress_head.0.weight', so it is no RoboMeter" in refuse(2, "--kind", "robometer")
    sample("robometer")
    assert "has no tensor 'lm_head.weight'" in refuse(2, "--kind", "vlm")


def test_plain_onnx_has_whole_blocks_only(sample: Any, refuse: Refuse) -> None:
    sample()
    told = refuse(2, "--dialect", "standard", "--vision", "int4", "--block", "64")
    assert "which are no multiple of 64" in told
