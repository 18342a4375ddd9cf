"""The smallest checkpoints that TensorRT Edge-LLM's quantizer and exporter take. Its own Python runs this, with torch beside it:

python edgellm_checkpoints.py FOLDER qwen3-vl|qwen3.5 [mtp]      FOLDER has a tokenizer already

A group of INT4 AWQ is 128 weights, and its kernels take multiples of 64: nothing can be smaller than this in the decoder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_HIDDEN, _HEADS, _HEAD = 128, 2, 64
_TEXT: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": _HIDDEN,
    "intermediate_size": _HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": _HEADS,
    "num_key_value_heads": 1,
    "head_dim": _HEAD,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
_VISION = {
    "depth": 1,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_heads": 1,
    "out_hidden_size": _HIDDEN,
    "patch_size": 16,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "num_position_embeddings": 16,
}
_LINEAR = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_conv_kernel_dim": 4,
}
_PICTURES = {
    "size": {"longest_edge": 16777216, "shortest_edge": 65536},
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "processor_class": "Qwen3VLProcessor",
    "image_processor_type": "Qwen2VLImageProcessorFast",
}


def write(folder: Path, family: str, *, mtp: bool) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    named = {"image_token_id": "image_pad", "video_token_id": "video_pad", "vision_start_token_id": "vision_start",
             "vision_end_token_id": "vision_end"}  # fmt: skip
    tokens = {key: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for key, name in named.items()}
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_interleaved": True}
    text = {**_TEXT, "eos_token_id": tokenizer.convert_tokens_to_ids("<|im_end|>")}
    if family == "qwen3-vl":
        config = transformers.Qwen3VLConfig(
            text_config={**text, "rope_parameters": {**rope, "mrope_section": [12, 10, 10]}},
            vision_config={**_VISION, "deepstack_visual_indexes": [0]},
            tie_word_embeddings=False,
            **tokens,
        )
        model = transformers.Qwen3VLForConditionalGeneration(config)
    else:
        rope |= {"mrope_section": [3, 3, 2], "partial_rotary_factor": 0.25}
        draft = {"mtp_num_hidden_layers": 1} if mtp else {}
        config = transformers.Qwen3_5Config(
            text_config={**text, **_LINEAR, **draft, "rope_parameters": rope},
            vision_config=_VISION,
            tie_word_embeddings=False,
            **tokens,
        )
        model = transformers.Qwen3_5ForConditionalGeneration(config)
    model.to(torch.float16).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(_PICTURES))
    if mtp:
        _add_draft_layer(folder)


def _add_draft_layer(folder: Path) -> None:
    """As the hub's Qwen3.5 has it: one more layer of attention, behind a projection of token and state."""
    import torch
    from safetensors.torch import load_file, save_file

    layer, wide = "mtp.layers.0", _HEADS * _HEAD
    matrices = {
        "mtp.fc": (_HIDDEN, 2 * _HIDDEN),
        f"{layer}.self_attn.q_proj": (2 * wide, _HIDDEN),
        f"{layer}.self_attn.k_proj": (_HEAD, _HIDDEN),
        f"{layer}.self_attn.v_proj": (_HEAD, _HIDDEN),
        f"{layer}.self_attn.o_proj": (_HIDDEN, wide),
        f"{layer}.mlp.gate_proj": (_HIDDEN, _HIDDEN),
        f"{layer}.mlp.up_proj": (_HIDDEN, _HIDDEN),
        f"{layer}.mlp.down_proj": (_HIDDEN, _HIDDEN),
        "mtp.pre_fc_norm_embedding": (_HIDDEN,),
        "mtp.pre_fc_norm_hidden": (_HIDDEN,),
        "mtp.norm": (_HIDDEN,),
        f"{layer}.input_layernorm": (_HIDDEN,),
        f"{layer}.post_attention_layernorm": (_HIDDEN,),
        f"{layer}.self_attn.q_norm": (_HEAD,),
        f"{layer}.self_attn.k_norm": (_HEAD,),
    }
    tensors = load_file(folder / "model.safetensors")
    for name, shape in matrices.items():
        tensors[f"{name}.weight"] = (torch.randn(shape) * 0.02).to(torch.float16)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], mtp="mtp" in sys.argv[3:])
