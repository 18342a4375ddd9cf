"""Random checkpoints of about 135 million parameters in the real architectures, made once and kept in the user's cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

VOCABULARY = 49152
_TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
_VISION: dict[str, Any] = {
    "depth": 6,
    "hidden_size": 192,
    "intermediate_size": 768,
    "num_heads": 6,
    "out_hidden_size": 576,
    "num_position_embeddings": 2304,
}
_TOKENS = {
    "image_token_id": VOCABULARY - 4,
    "video_token_id": VOCABULARY - 3,
    "vision_start_token_id": VOCABULARY - 6,
    "vision_end_token_id": VOCABULARY - 5,
    "tie_word_embeddings": True,
}
FAMILIES = ("qwen3-vl", "qwen3.5")


def folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "compass-edge" / "bench-engines"


def _model(family: str) -> Any:
    import transformers

    if family == "qwen3-vl":
        rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [12, 10, 10], "mrope_interleaved": True}
        text = {**_TEXT, "num_hidden_layers": 30, "rope_parameters": rope}
        vision = {**_VISION, "deepstack_visual_indexes": [1, 3, 5]}
        config: Any = transformers.Qwen3VLConfig(text_config=text, vision_config=vision, **_TOKENS)
        return transformers.Qwen3VLForConditionalGeneration(config)
    rope = {
        "rope_type": "default",
        "rope_theta": 1e7,
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
        "partial_rotary_factor": 0.25,
    }
    linear = {f"linear_{name}_head_dim": 64 for name in ("key", "value")}
    heads = {f"linear_num_{name}_heads": 9 for name in ("key", "value")}
    text = {**_TEXT, **linear, **heads, "linear_conv_kernel_dim": 4, "num_hidden_layers": 28, "rope_parameters": rope}
    config = transformers.Qwen3_5Config(text_config=text, vision_config=_VISION, **_TOKENS)
    return transformers.Qwen3_5ForConditionalGeneration(config)


def checkpoint(family: str) -> Path:
    """The folder with config.json and model.safetensors; made with transformers where it is not there yet."""
    path = folder() / "checkpoints" / family
    if (path / "config.json").is_file():
        return path
    import torch

    torch.manual_seed(0)
    half = path.with_name(f"{family}.{os.getpid()}.part")
    _model(family).save_pretrained(half)
    if path.exists():
        shutil.rmtree(path)
    half.rename(path)
    return path
