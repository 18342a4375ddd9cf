"""OpenVINO: python _engines_openvino.py FAMILY THREADS int8|fp32.

The text decoder is converted from the torch model with its key-value cache as the state of the graph, so that OpenVINO's
own fused attention works in place; only the last position's logits are computed. int8 is NNCF's weight compression.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines advertise AMX and lack it

import numpy as np
import openvino as ov
from _engines_checkpoints import checkpoint, folder
from _engines_contender import serve


def _converted(family: str) -> ov.Model:
    import torch
    import transformers
    from openvino import opset13
    from openvino._offline_transformations import apply_make_stateful_transformation
    from torch.nn.functional import scaled_dot_product_attention

    model = transformers.Qwen3VLForConditionalGeneration.from_pretrained(checkpoint(family), dtype=torch.float32)
    text, head, config = model.model.language_model, model.lm_head, model.config.text_config
    size, layers = config.head_dim, config.num_hidden_layers
    frequencies = 1.0 / config.rope_parameters["rope_theta"] ** (torch.arange(0, size, 2) / size)

    class Decoder(torch.nn.Module):
        """The text decoder, for text: all three axes of the positions are the same, so that rotation is the plain one."""

        def __init__(self) -> None:
            super().__init__()
            self.text, self.head = text, head

        def forward(self, tokens: Any, order: Any, *past: Any) -> Any:
            hidden = self.text.embed_tokens(tokens)
            before, count = past[0].shape[2], tokens.shape[1]
            places = torch.arange(before, before + count)
            angles = places.float()[:, None] * frequencies
            cos, sin = (torch.cat((wave, wave), -1) for wave in (angles.cos(), angles.sin()))
            mask = torch.where(torch.arange(before + count)[None] <= places[:, None], 0.0, float("-inf"))[None, None]
            states = []

            def turned(x: Any) -> Any:
                return x * cos + torch.cat((-x[..., size // 2 :], x[..., : size // 2]), -1) * sin

            for index, layer in enumerate(self.text.layers):
                own = layer.self_attn
                x = layer.input_layernorm(hidden)
                query, key, value = (part(x).view(1, count, -1, size) for part in (own.q_proj, own.k_proj, own.v_proj))
                query, key = own.q_norm(query).transpose(1, 2), own.k_norm(key).transpose(1, 2)
                old = [part.index_select(0, order) for part in past[2 * index : 2 * index + 2]]
                keys = torch.cat((old[0], turned(key)), 2)
                values = torch.cat((old[1], value.transpose(1, 2)), 2)
                states += [keys, values]
                groups = query.shape[1] // keys.shape[1]
                shape = (1, keys.shape[1], groups, before + count, size)
                wide = [s[:, :, None].expand(shape).reshape(1, -1, before + count, size) for s in (keys, values)]
                seen = scaled_dot_product_attention(turned(query), *wide, attn_mask=mask)
                hidden = hidden + own.o_proj(seen.transpose(1, 2).reshape(1, count, -1))
                hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            return (self.head(self.text.norm(hidden[:, -1:])), *states)

    heads = config.num_key_value_heads
    example = (torch.zeros((1, 3), dtype=torch.int64), torch.zeros(1, dtype=torch.int32))
    past = tuple(torch.zeros((1, heads, 5, size)) for _ in range(2 * layers))
    shapes = [ov.PartialShape([1, -1]), ov.PartialShape([1])] + [ov.PartialShape([1, heads, -1, size])] * 2 * layers
    with torch.no_grad():
        graph = ov.convert_model(Decoder().eval(), example_input=(*example, *past), input=shapes)
    pairs = {}
    for index, parameter in enumerate(graph.inputs):
        name = ("tokens", "order")[index] if index < 2 else f"past.{index - 2}"
        parameter.get_tensor().set_names({name})
    for index, result in enumerate(graph.outputs):
        result.get_tensor().set_names({f"present.{index - 1}" if index else "logits"})
        if index:
            pairs[f"past.{index - 1}"] = f"present.{index - 1}"
    apply_make_stateful_transformation(graph, pairs)
    for node in graph.get_ops():
        if node.get_type_name() == "ReadValue":  # the state of a fresh sequence; without it the fused attention is lost
            empty = opset13.constant(np.array([1, heads, 0, size], np.int64))
            node.set_arguments([opset13.broadcast(opset13.constant(np.float32(0.0)), empty)])
    graph.validate_nodes_and_infer_types()
    return graph


def _stored(family: str, precision: str) -> Path:
    path = folder() / "openvino" / f"{family}-{precision}-{ov.__version__.split('-')[0]}.xml"
    if not path.is_file():
        graph = _converted(family)
        if precision == "int8":
            import nncf

            graph = nncf.compress_weights(graph, mode=nncf.CompressWeightsMode.INT8_ASYM)
        path.parent.mkdir(parents=True, exist_ok=True)
        ov.save_model(graph, path, compress_to_fp16=False)
    return path


class OpenVino:
    def __init__(self, family: str, threads: int, precision: str) -> None:
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            **dict(pair.split("=") for pair in os.environ.get("OPENVINO_SETTINGS", "").split() if pair),
        }
        self._compiled = ov.Core().compile_model(_stored(family, precision), "CPU", settings)
        self._request = self._compiled.create_infer_request()
        self._request.set_tensor("order", ov.Tensor(np.zeros(1, np.int32)))

    def _run(self, tokens: np.ndarray) -> Any:
        self._request.set_tensor("tokens", ov.Tensor(tokens))
        self._request.infer()
        return self._request.get_tensor("logits").data

    def prefill(self, tokens: Sequence[int]) -> Any:
        self._request.reset_state()
        return self._run(np.array([tokens], np.int64))

    def decode(self, tokens: Sequence[int]) -> Any:
        for token in tokens:
            logits = self._run(np.array([[token]], np.int64))
        return logits


if __name__ == "__main__":
    serve(OpenVino(sys.argv[1], int(sys.argv[2]), sys.argv[3]), {})
