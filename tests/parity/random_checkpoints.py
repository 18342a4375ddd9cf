"""Small checkpoints of the real architectures with random weights, saved by transformers, with a tokenizer that fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizer_samples import write_byte_tokenizer

from compass_edge.engines.tokenizer import Tokenizer

VOCABULARY = 512
HIDDEN = 128
_TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}
_VISION: dict[str, Any] = {
    "depth": 4,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_heads": 4,
    "out_hidden_size": HIDDEN,
    "patch_size": 16,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "num_position_embeddings": 144,
}
FAMILIES = ("qwen3-vl", "qwen3.5", "qwen2.5-vl")


def _tokens(folder: Path) -> dict[str, Any]:
    tokenizer = Tokenizer(folder)
    names = {"image_token_id": "image_pad", "video_token_id": "video_pad", "vision_start_token_id": "vision_start",
             "vision_end_token_id": "vision_end"}  # fmt: skip
    found = {key: tokenizer.id_of(f"<|{name}|>") for key, name in names.items()}
    return {**found, "bos_token_id": None, "eos_token_id": tokenizer.id_of("<|im_end|>")}


def config_of(family: str, folder: Path, **text: Any) -> Any:
    tokens = {**_tokens(folder), "tie_word_embeddings": False}
    text |= {key: tokens[key] for key in ("bos_token_id", "eos_token_id")}
    if family == "qwen3-vl":
        rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
        return transformers.Qwen3VLConfig(
            text_config={**_TEXT, "head_dim": 32, "rope_parameters": rope, **text},
            vision_config={**_VISION, "deepstack_visual_indexes": [0, 1, 3]},
            **tokens,
        )
    if family == "qwen3.5":
        rope = {"rope_type": "default", "rope_theta": 1e7, "mrope_section": [3, 3, 2], "mrope_interleaved": True,
                "partial_rotary_factor": 0.25}  # fmt: skip
        linear = {"linear_key_head_dim": 16, "linear_value_head_dim": 32, "linear_num_key_heads": 2,
                  "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4}  # fmt: skip
        return transformers.Qwen3_5Config(
            text_config={**_TEXT, "head_dim": 64, **linear, "rope_parameters": rope, **text},
            vision_config=_VISION,
            **tokens,
        )
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    vision = {**_VISION, "patch_size": 14, "window_size": 56, "fullatt_block_indexes": [1, 3], "hidden_act": "silu"}
    del vision["num_position_embeddings"]
    return transformers.Qwen2_5_VLConfig(
        text_config={**_TEXT, "rope_parameters": rope, **text}, vision_config=vision, **tokens
    )


_CLASSES = {
    "qwen3-vl": "Qwen3VLForConditionalGeneration",
    "qwen3.5": "Qwen3_5ForConditionalGeneration",
    "qwen2.5-vl": "Qwen2_5_VLForConditionalGeneration",
}


def stirred(model: torch.nn.Module, seed: int) -> None:
    """Weights as large as trained ones: what transformers starts with is so small that mistakes would not show."""
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, values in model.named_parameters():
            if values.dim() >= 2:
                size = 0.5 if "embed" in name else (4 if "lm_head" in name else 0.7) / values.shape[-1] ** 0.5
                values.copy_(torch.randn(values.shape, generator=dice) * size)
            elif name.endswith("A_log"):  # from heads that forget at once to heads that keep everything
                values.copy_(torch.linspace(-6, 2.5, len(values)))
            else:
                values.add_(torch.randn(values.shape, generator=dice) * 0.1)


def write_checkpoint(family: str, folder: Path, *, seed: int = 0, shards: str = "5GB", **text: Any) -> Any:
    """Saves a model of the family with its tokenizer and returns it, in float32 and eager attention."""
    write_byte_tokenizer(folder)
    config = config_of(family, folder, **text)
    config._attn_implementation = "eager"
    model = getattr(transformers, _CLASSES[family])(config).eval()
    stirred(model, seed)
    model.save_pretrained(folder, max_shard_size=shards)
    return model


class TorchRoboMeter(torch.nn.Module):
    """An implementation of its own of RoboMeter's network, with the key names of the published checkpoint."""

    def __init__(self, config: Any, bins: int = 10) -> None:
        super().__init__()
        self.model = transformers.Qwen3VLModel(config)
        hidden = config.text_config.hidden_size

        def head(width: int) -> torch.nn.Module:
            return torch.nn.Sequential(
                torch.nn.Linear(hidden, hidden // 2), torch.nn.LayerNorm(hidden // 2), torch.nn.GELU(),
                torch.nn.Dropout(0.1), torch.nn.Linear(hidden // 2, width),
            )  # fmt: skip

        self.progress_head, self.success_head, self.preference_head = head(bins), head(1), head(1)
        self.frame_pool_attn = torch.nn.Linear(hidden, 1, bias=False)
        self.bins = bins

    @torch.inference_mode()
    def scores(self, ids: list[int], mark: int, **pictures: Any) -> tuple[Any, Any]:
        tokens = torch.tensor([ids])
        kinds = (tokens == self.model.config.image_token_id).int()
        hidden = self.model(input_ids=tokens, mm_token_type_ids=kinds, **pictures).last_hidden_state
        at = hidden[tokens == mark]
        centres = torch.linspace(0, 1, self.bins)
        progress = (self.progress_head(at).softmax(-1) * centres).sum(-1)
        return progress.numpy(), self.success_head(at)[:, 0].sigmoid().numpy()


def write_robometer(folder: Path, *, seed: int = 0, shards: int = 1, bins: int = 10) -> TorchRoboMeter:
    """As it is published: config.json of a wrapper, config.yaml of the experiment, one file or shards with an index."""
    write_byte_tokenizer(folder)
    config = config_of("qwen3-vl", folder, vocab_size=Tokenizer(folder).size)
    config._attn_implementation = "eager"
    model = TorchRoboMeter(config, bins).eval()
    stirred(model, seed)
    with torch.no_grad():  # so that scores spread between 0 and 1
        model.progress_head[4].weight.mul_(16)
        model.success_head[4].weight.mul_(8)
    config.architectures = ["RFM"]
    config.save_pretrained(folder)
    (folder / "config.yaml").write_text(
        "model:\n  use_per_frame_progress_token: true\n  progress_discrete_bins: ${loss.progress_discrete_bins}\n"
        f"data:\n  use_multi_image: true\nloss:\n  progress_loss_type: discrete\n  progress_discrete_bins: {bins}\n"
    )
    tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return model
    import json

    places: dict[str, str] = {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        some = {key: value for at, (key, value) in enumerate(tensors.items()) if at % shards == shard}
        save_file(some, folder / name)
        places |= dict.fromkeys(some, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return model
