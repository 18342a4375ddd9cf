"""Ours: python _engines_ours.py FAMILY THREADS fp32|int8|int4."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from _engines_checkpoints import exported
from _engines_contender import serve

from compass_edge.engines.onnx.prompt import expand
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm


class Ours:
    def __init__(self, family: str, threads: int, precision: str) -> None:
        self._body = OnnxVlm(
            exported(family, precision), Options(threads=threads, context=1024, batch=1, prefixes=0)
        ).body
        self._position = 0

    def prefill(self, tokens: Sequence[int]) -> Any:
        self._body.rows.forget_all()
        prompt = expand(tokens, self._body.tokens.image, [], self._body.vision.grid)
        self._position = prompt.next_position
        return self._body.read(prompt, [len(prompt) - 1])[1]["logits"]

    def decode(self, tokens: Sequence[int]) -> Any:
        for token in tokens:
            logits = self._body.advance(0, [[token]], [self._position])["logits"]
            self._position += 1
        return logits


if __name__ == "__main__":
    serve(Ours(sys.argv[1], int(sys.argv[2]), sys.argv[3]), {})
