"""Random checkpoints in the real architectures, made once and kept in the user's cache.

Qwen3-VL-4B (RoboMeter's body) and Qwen3.5-4B scaled down to about 140 million parameters: the relation of width, depth
and feed-forward, the width of a head and the vision tower's share are theirs or near, so that a pass spends its time on the same
things (more of it on attention than they do, for that does not shrink with the width squared). The tokenizer is learned from this project's own prompts, so that replies are cut as real ones are.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from compass_edge import __version__
from compass_edge.export.robometer import TOKENS

VOCABULARY = 49152
_TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 768,
    "intermediate_size": 2944,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
_VISION: dict[str, Any] = {
    "depth": 7,
    "hidden_size": 320,
    "intermediate_size": 1280,
    "num_heads": 5,
    "out_hidden_size": 768,
    "num_position_embeddings": 2304,
}
FAMILIES = ("qwen3-vl", "qwen3.5")
_EDITION = 4  # changes with anything that changes a checkpoint here or a model made of it
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
            "<|video_pad|>", *TOKENS)  # fmt: skip
_TEMPLATE = """\
{%- set seen = namespace(images=0) -%}
{%- for turn in messages -%}
{{- '<|im_start|>' ~ turn.role ~ '\\n' -}}
{%- for item in turn.content -%}
{%- if item.type == 'image' -%}
{%- set seen.images = seen.images + 1 -%}
{%- if add_vision_id -%}{{- 'Picture ' ~ seen.images ~ ': ' -}}{%- endif -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- else -%}{{- item.text -}}{%- endif -%}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""


def folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "compass-edge" / f"bench-engines-{_EDITION}"


def _write_tokenizer(path: Path) -> dict[str, int]:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers

    root = Path(__file__).parents[1]
    texts = [p.read_text() for p in (*sorted(root.glob("**/roles/*.py")), *sorted(root.glob("*.md")))]
    learned = tokenizers.Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    learned.train_from_iterator(texts, trainer)
    learned.add_special_tokens(list(_SPECIAL))
    path.mkdir(parents=True, exist_ok=True)
    learned.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", "chat_template": _TEMPLATE}))
    return {
        name: learned.token_to_id(f"<|{name}|>")
        for name in ("image_pad", "video_pad", "vision_start", "vision_end", "im_end")
    }


def _config(family: str, ids: dict[str, int]) -> Any:
    import transformers

    tokens = {
        "image_token_id": ids["image_pad"],
        "video_token_id": ids["video_pad"],
        "vision_start_token_id": ids["vision_start"],
        "vision_end_token_id": ids["vision_end"],
        "tie_word_embeddings": True,
    }
    ends = {"bos_token_id": None, "eos_token_id": ids["im_end"]}
    if family == "qwen3-vl":
        rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20], "mrope_interleaved": True}
        heads = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128}
        text = {**_TEXT, **ends, **heads, "num_hidden_layers": 12, "rope_parameters": rope}
        return transformers.Qwen3VLConfig(
            text_config=text, vision_config={**_VISION, "deepstack_visual_indexes": [1, 3, 5]}, **tokens
        )
    rope = {
        "rope_type": "default",
        "rope_theta": 1e7,
        "mrope_section": [6, 5, 5],
        "mrope_interleaved": True,
        "partial_rotary_factor": 0.25,
    }
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128}
    linear = {"linear_num_key_heads": 6, "linear_num_value_heads": 12, "linear_conv_kernel_dim": 4}
    linear |= {f"linear_{name}_head_dim": 64 for name in ("key", "value")}
    text = {**_TEXT, **ends, **heads, **linear, "num_hidden_layers": 12, "rope_parameters": rope}
    return transformers.Qwen3_5Config(text_config=text, vision_config=_VISION, **tokens)


def checkpoint(family: str) -> Path:
    """The folder with config.json and model.safetensors; made with transformers where it is not there yet."""
    path = folder() / "checkpoints" / family
    if path.exists():
        return path
    import torch
    import transformers

    torch.manual_seed(0)
    half = path.with_name(f"{family}.{os.getpid()}.part")
    config = _config(family, _write_tokenizer(half))
    kind = "Qwen3VLForConditionalGeneration" if family == "qwen3-vl" else "Qwen3_5ForConditionalGeneration"
    getattr(transformers, kind)(config).save_pretrained(half)
    half.rename(path)
    return path


def robometer() -> Path:
    """The Qwen3-VL with RoboMeter's heads instead of its own."""
    path = folder() / "checkpoints" / "robometer"
    if path.exists():
        return path
    import torch
    from safetensors.torch import load_file, save_file

    source = checkpoint("qwen3-vl")
    half = path.with_name(f"robometer.{os.getpid()}.part")
    shutil.copytree(source, half, ignore=shutil.ignore_patterns("*.safetensors"))
    tensors = {name: value for name, value in load_file(source / "model.safetensors").items() if "lm_head" not in name}
    torch.manual_seed(1)
    hidden = _TEXT["hidden_size"]
    for name, width in (("progress_head", 10), ("success_head", 1)):
        head = torch.nn.Sequential(
            torch.nn.Linear(hidden, hidden // 2), torch.nn.LayerNorm(hidden // 2), torch.nn.GELU(), torch.nn.Dropout(),
            torch.nn.Linear(hidden // 2, width),
        )  # fmt: skip
        tensors |= {f"{name}.{key}": value.detach() for key, value in head.state_dict().items()}
    save_file(tensors, half / "model.safetensors")
    half.rename(path)
    return path


def exported(name: str, precision: str) -> Path:
    """A model of ours from the checkpoint of that name."""
    from compass_edge.export.model import export_model
    from compass_edge.export.recipe import Recipe

    path = folder() / "models" / f"{name}-{precision}-{__version__}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        source = robometer() if name == "robometer" else checkpoint(name)
        export_model(source, path, Recipe(decoder=precision), name=f"{name}-{precision}")
    return path
