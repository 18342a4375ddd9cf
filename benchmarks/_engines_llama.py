"""llama.cpp with Q8_0 weights: python _engines_llama.py qwen3-vl THREADS.

For text a Qwen3-VL is a Qwen3: its weights are written as a GGUF of that architecture, with a made-up vocabulary, because
prompts are given as tokens. The server's own completion call is timed inside this process, without HTTP.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import xllamacpp
from _engines_checkpoints import VOCABULARY, checkpoint, folder
from _engines_contender import serve

_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _stored(family: str) -> Path:
    path = folder() / "llama" / f"{family}-q8_0.gguf"
    if path.is_file():
        return path
    from safetensors import safe_open

    source = checkpoint(family)
    text = json.loads((source / "config.json").read_text())["text_config"]
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    out = gguf.GGUFWriter(half, "qwen3")
    out.add_context_length(text["max_position_embeddings"])
    out.add_embedding_length(text["hidden_size"])
    out.add_block_count(text["num_hidden_layers"])
    out.add_feed_forward_length(text["intermediate_size"])
    out.add_head_count(text["num_attention_heads"])
    out.add_head_count_kv(text["num_key_value_heads"])
    out.add_key_length(text["head_dim"])
    out.add_value_length(text["head_dim"])
    out.add_rope_freq_base(text["rope_parameters"]["rope_theta"])
    out.add_layer_norm_rms_eps(text["rms_norm_eps"])
    out.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list([f"t{number}" for number in range(VOCABULARY)])
    out.add_token_types([gguf.TokenType.NORMAL] * VOCABULARY)
    out.add_token_merges(["t 1"])
    out.add_eos_token_id(VOCABULARY - 1)
    with safe_open(source / "model.safetensors", "np") as weights:

        def add(name: str, key: str) -> None:
            values = weights.get_tensor(f"model.language_model.{key}.weight").astype(np.float32)
            if values.ndim == 1:
                out.add_tensor(name, values)
            else:
                kind = gguf.GGMLQuantizationType.Q8_0
                out.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

        add("token_embd.weight", "embed_tokens")
        add("output_norm.weight", "norm")
        for layer in range(text["num_hidden_layers"]):
            for key, name in _LAYER.items():
                add(f"blk.{layer}.{name}.weight", f"layers.{layer}.{key}")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    half.rename(path)
    return path


class Llama:
    """Decoding goes with the tokens that it samples itself: the work is the same, and other tokens cannot be given."""

    def __init__(self, family: str, threads: int) -> None:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(_stored(family))
        parameters.n_ctx, parameters.n_parallel, parameters.verbosity = 1024, 1, 0
        parameters.n_batch = parameters.n_ubatch = 512
        for cpu in (parameters.cpuparams, parameters.cpuparams_batch):
            cpu.n_threads, cpu.poll = threads, 0
        self._server = xllamacpp.Server(parameters)
        self._tokens: list[int] = []

    def _complete(self, count: int, **more: Any) -> dict[str, Any]:
        asked = {
            "prompt": self._tokens,
            "n_predict": count,
            "samplers": ["top_k"],
            "top_k": 1,
            "ignore_eos": True,
            **more,
        }
        answer = self._server.handle_completions(asked)
        if "choices" not in answer:
            raise SystemExit(f"llama.cpp answered: {answer}")
        return answer

    def prefill(self, tokens: Sequence[int]) -> Any:
        self._tokens = list(tokens)
        return self._complete(1, cache_prompt=False)

    def decode(self, tokens: Sequence[int]) -> Any:
        """The prompt is kept from before, its last token is read again: as many passes of one token."""
        return self._complete(len(tokens), cache_prompt=True)


if __name__ == "__main__":
    serve(Llama(sys.argv[1], int(sys.argv[2])), {})
