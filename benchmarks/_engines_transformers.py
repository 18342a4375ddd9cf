"""transformers in fp32 with its sdpa attention: python _engines_transformers.py FAMILY THREADS."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
import transformers
from _engines_checkpoints import checkpoint
from _engines_contender import serve


class Transformers:
    """The text model and its head are called directly: nothing is computed for images, and one position's logits."""

    def __init__(self, family: str, threads: int) -> None:
        torch.set_num_threads(threads)
        kind = "Qwen3VLForConditionalGeneration" if family == "qwen3-vl" else "Qwen3_5ForConditionalGeneration"
        model = getattr(transformers, kind).from_pretrained(
            checkpoint(family), dtype=torch.float32, attn_implementation="sdpa"
        )
        self._text, self._head = model.model.language_model.eval(), model.lm_head
        self._cache: Any = None

    def _run(self, tokens: Sequence[int]) -> Any:
        with torch.inference_mode():
            out = self._text(torch.tensor([list(tokens)]), past_key_values=self._cache, use_cache=True)
            self._cache = out.past_key_values
            return self._head(out.last_hidden_state[:, -1]).numpy()

    def prefill(self, tokens: Sequence[int]) -> Any:
        self._cache = None
        return self._run(tokens)

    def decode(self, tokens: Sequence[int]) -> Any:
        for token in tokens:
            logits = self._run([token])
        return logits


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    serve(Transformers(sys.argv[1], int(sys.argv[2])), {})
