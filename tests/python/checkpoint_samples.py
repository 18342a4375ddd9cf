"""Checkpoints of the real architectures with random weights, written by numpy alone: config, shapes by the config, tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors_samples import f32, write_safetensors
from tokenizer_samples import NOT_SPECIAL, QWEN, ROBOMETER, write_byte_tokenizer

Shapes = dict[str, tuple[int, ...]]
Tensors = dict[str, NDArray[np.float32]]
FAMILIES = ("qwen3-vl", "qwen3.5", "qwen2.5-vl")
KINDS = (*FAMILIES, "robometer")
VOCABULARY = 512
TOKENS = (
    256 + len(QWEN) + len(ROBOMETER) + len(NOT_SPECIAL)
)  # of the byte tokenizer: RoboMeter's embedding has as many rows
EXPERIMENT = """\
model:
  use_per_frame_progress_token: true
  progress_discrete_bins: ${loss.progress_discrete_bins}
data:
  use_multi_image: true
loss:
  progress_loss_type: discrete
  progress_discrete_bins: 10
"""
_HIDDEN = 64
_TEXT: dict[str, Any] = {
    "hidden_size": _HIDDEN,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
}
_VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": _HIDDEN,
    "patch_size": 16,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
}
_LINEAR = {
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_conv_kernel_dim": 4,
}


def config_of(kind: str) -> dict[str, Any]:
    """config.json of a small one, as the hubs have it."""
    ids = {token: 256 + place for place, token in enumerate(QWEN)}
    config: dict[str, Any] = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "eos_token_id": ids["<|im_end|>"],
        "tie_word_embeddings": False,
    }
    text = {**_TEXT, "vocab_size": VOCABULARY}
    if kind == "qwen3.5":
        rope = {"rope_theta": 1e7, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.25}
        types = ["linear_attention", "full_attention"]
        text |= {"head_dim": 32, "layer_types": types, "rope_parameters": rope, **_LINEAR}
        vision = {**_VISION, "hidden_act": "gelu_pytorch_tanh", "num_position_embeddings": 16}
        return {**config, "model_type": "qwen3_5", "text_config": text, "vision_config": vision}
    if kind == "qwen2.5-vl":
        text |= {"rope_parameters": {"rope_theta": 1e6, "mrope_section": [2, 3, 3]}}
        vision = {
            **_VISION,
            "hidden_act": "silu",
            "patch_size": 14,
            "window_size": 56,
            "fullatt_block_indexes": [1],
            "tokens_per_second": 2,
        }
        return {**config, "model_type": "qwen2_5_vl", "text_config": text, "vision_config": vision}
    text |= {"head_dim": 16, "rope_parameters": {"rope_theta": 5e6, "mrope_section": [3, 3, 2]}}
    vision = {**_VISION, "hidden_act": "gelu_pytorch_tanh", "num_position_embeddings": 16}
    vision["deepstack_visual_indexes"] = [0, 1]
    if kind == "robometer":
        text["vocab_size"] = TOKENS
        config["architectures"] = ["RFM"]
    return {**config, "model_type": "qwen3_vl", "text_config": text, "vision_config": vision}


def shapes_of(kind: str, config: Mapping[str, Any]) -> Shapes:
    """The tensors that a checkpoint of this config has."""
    text, vision = config["text_config"], config["vision_config"]
    shapes = {f"model.visual.{name}": shape for name, shape in _tower(kind, vision)}
    shapes |= {f"model.language_model.{name}": shape for name, shape in _decoder(kind, text)}
    hidden = text["hidden_size"]
    if kind == "robometer":
        for name, width in (("progress_head", 10), ("success_head", 1), ("preference_head", 1)):
            shapes |= dict(_linear(f"{name}.0", hidden // 2, hidden))
            shapes |= dict(_norm(f"{name}.1", hidden // 2))
            shapes |= dict(_linear(f"{name}.4", width, hidden // 2))
        shapes["frame_pool_attn.weight"] = (1, hidden)
    elif not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (text["vocab_size"], hidden)
    return shapes


Entries = Iterator[tuple[str, tuple[int, ...]]]


def _linear(name: str, rows: int, columns: int, bias: bool = True) -> Entries:
    yield f"{name}.weight", (rows, columns)
    if bias:
        yield f"{name}.bias", (rows,)


def _norm(name: str, width: int, bias: bool = True) -> Entries:
    yield f"{name}.weight", (width,)
    if bias:
        yield f"{name}.bias", (width,)


def _tower(kind: str, vision: Mapping[str, Any]) -> Entries:
    hidden, mlp, out, patch = (
        vision[key] for key in ("hidden_size", "intermediate_size", "out_hidden_size", "patch_size")
    )
    wide, second = hidden * vision["spatial_merge_size"] ** 2, kind == "qwen2.5-vl"
    yield "patch_embed.proj.weight", (hidden, 3, vision["temporal_patch_size"], patch, patch)
    if not second:
        yield "patch_embed.proj.bias", (hidden,)
        yield "pos_embed.weight", (vision["num_position_embeddings"], hidden)
    for layer in range(vision["depth"]):
        at = f"blocks.{layer}"
        for name in ("norm1", "norm2"):
            yield from _norm(f"{at}.{name}", hidden, bias=not second)
        yield from _linear(f"{at}.attn.qkv", 3 * hidden, hidden)
        yield from _linear(f"{at}.attn.proj", hidden, hidden)
        for name in ("gate_proj", "up_proj") if second else ("linear_fc1",):
            yield from _linear(f"{at}.mlp.{name}", mlp, hidden)
        yield from _linear(f"{at}.mlp.{'down_proj' if second else 'linear_fc2'}", hidden, mlp)
    if second:
        yield from _norm("merger.ln_q", hidden, bias=False)
        yield from _linear("merger.mlp.0", wide, wide)
        yield from _linear("merger.mlp.2", out, wide)
        return
    taps = [f"deepstack_merger_list.{tap}" for tap in range(len(vision.get("deepstack_visual_indexes", ())))]
    for at in ("merger", *taps):
        yield from _norm(f"{at}.norm", hidden if at == "merger" else wide)
        yield from _linear(f"{at}.linear_fc1", wide, wide)
        yield from _linear(f"{at}.linear_fc2", out, wide)


def _decoder(kind: str, text: Mapping[str, Any]) -> Entries:
    hidden, mlp, heads = text["hidden_size"], text["intermediate_size"], text["num_attention_heads"]
    head = text.get("head_dim", hidden // heads)
    queries, keys, gated = heads * head, text["num_key_value_heads"] * head, kind == "qwen3.5"
    yield "embed_tokens.weight", (text["vocab_size"], hidden)
    yield "norm.weight", (hidden,)
    for layer in range(text["num_hidden_layers"]):
        at = f"layers.{layer}"
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{at}.{name}.weight", (hidden,)
        for name in ("gate_proj", "up_proj"):
            yield from _linear(f"{at}.mlp.{name}", mlp, hidden, bias=False)
        yield from _linear(f"{at}.mlp.down_proj", hidden, mlp, bias=False)
        if text.get("layer_types", ["full_attention"] * (layer + 1))[layer] == "linear_attention":
            yield from _delta(f"{at}.linear_attn", text)
            continue
        biased = kind == "qwen2.5-vl"
        yield from _linear(f"{at}.self_attn.q_proj", (2 if gated else 1) * queries, hidden, biased)
        for name in ("k_proj", "v_proj"):
            yield from _linear(f"{at}.self_attn.{name}", keys, hidden, biased)
        yield from _linear(f"{at}.self_attn.o_proj", hidden, queries, bias=False)
        if not biased:
            for name in ("q_norm", "k_norm"):
                yield f"{at}.self_attn.{name}.weight", (head,)


def _delta(at: str, text: Mapping[str, Any]) -> Entries:
    heads, hidden = text["linear_num_value_heads"], text["hidden_size"]
    values = heads * text["linear_value_head_dim"]
    channels = 2 * text["linear_num_key_heads"] * text["linear_key_head_dim"] + values
    for name, rows in (("qkv", channels), ("z", values), ("b", heads), ("a", heads)):
        yield from _linear(f"{at}.in_proj_{name}", rows, hidden, bias=False)
    yield f"{at}.conv1d.weight", (channels, 1, text["linear_conv_kernel_dim"])
    yield f"{at}.dt_bias", (heads,)
    yield f"{at}.A_log", (heads,)
    yield f"{at}.norm.weight", (text["linear_value_head_dim"],)
    yield from _linear(f"{at}.out_proj", hidden, values, bias=False)


def spread(kind: str, name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Middle and width of a tensor's numbers: as large as trained ones, so that mistakes show."""
    if len(shape) > 1:
        wide = 0.5 if "embed_tokens" in name or "lm_head" in name else 0.7 / float(np.prod(shape[1:])) ** 0.5
        return 0.0, wide * (4 if name == "progress_head.4.weight" else 1)  # so that scores spread between 0 and 1
    from_zero = kind == "qwen3.5" and "language_model" in name and "linear_attn" not in name  # its norms add the one
    return float(name.endswith("weight") and not from_zero), 0.1


def values_of(kind: str, config: Mapping[str, Any], seed: int = 0) -> Tensors:
    dice = np.random.default_rng(seed)
    made: Tensors = {}
    for name, shape in shapes_of(kind, config).items():
        middle, width = spread(kind, name, shape)
        made[name] = (middle + width * dice.standard_normal(shape)).astype(np.float32)
    return made


def write_sample(
    kind: str,
    folder: Path,
    *,
    seed: int = 0,
    shards: int = 1,
    shape: Callable[[dict[str, Any]], None] | None = None,
    config: Callable[[dict[str, Any]], None] | None = None,
    tensors: Callable[[Tensors], None] | None = None,
) -> Path:
    """A small checkpoint. `shape` may change its config, and the tensors follow. `config` and `tensors` may change what is
    written: the latter does not follow the former.
    """
    write_byte_tokenizer(folder)
    about = config_of(kind)
    if shape:
        shape(about)
    values = values_of(kind, about, seed)
    if config:
        config(about)
    if tensors:
        tensors(values)
    (folder / "config.json").write_text(json.dumps(about))
    if kind == "robometer":
        (folder / "config.yaml").write_text(EXPERIMENT)
    write_weights(folder, values, shards)
    return folder


def write_weights(folder: Path, values: Mapping[str, NDArray[np.float32]], shards: int = 1) -> None:
    if shards == 1:
        write_safetensors(folder / "model.safetensors", {name: f32(value) for name, value in values.items()})
        return
    places: dict[str, str] = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        some = {key: f32(value) for at, (key, value) in enumerate(values.items()) if at % shards == shard}
        write_safetensors(folder / name, some)
        places |= dict.fromkeys(some, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
