"""compass-tiny in torch: the parameters of a Qwen3-VL with RoboMeter's heads, run in batches on a CPU.

The parameters are those of transformers' Qwen3VLModel, so that a checkpoint is exported like any other; the passes are our own,
because all pictures of a batch go through the tower at once. `tests/training` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

SIDE, PATCH = 240, 20
GRID = SIDE // PATCH  # patches a side
CELLS = GRID // 2  # merged tokens a side
VISUAL = CELLS * CELLS  # tokens of a picture
HEAD = 32
BINS = 10
_MIDWAY = 2  # the layer that learns to point: those after it can use what it has found


@dataclass(frozen=True, slots=True)
class Size:
    tower: int = 128
    tower_depth: int = 4
    tower_heads: int = 4
    tower_mlp: int = 384
    hidden: int = 192
    depth: int = 5
    heads: int = 9  # in groups of three; the last group of every layer is guided (training.guidance)
    kv_heads: int = 3
    mlp: int = 512


def config(size: Size, vocabulary: int, tokens: dict[str, int]) -> Any:
    from transformers import Qwen3VLConfig

    made = Qwen3VLConfig(
        vision_config={
            "depth": size.tower_depth,
            "hidden_size": size.tower,
            "num_heads": size.tower_heads,
            "intermediate_size": size.tower_mlp,
            "patch_size": PATCH,
            "spatial_merge_size": 2,
            "temporal_patch_size": 1,
            "out_hidden_size": size.hidden,
            "num_position_embeddings": GRID * GRID,
            "deepstack_visual_indexes": [size.tower_depth // 2 - 1],
            "hidden_act": "gelu_pytorch_tanh",
        },
        text_config={
            "vocab_size": vocabulary,
            "hidden_size": size.hidden,
            "intermediate_size": size.mlp,
            "num_hidden_layers": size.depth,
            "num_attention_heads": size.heads,
            "num_key_value_heads": size.kv_heads,
            "head_dim": HEAD,
            "max_position_embeddings": 8192,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [6, 5, 5],
                "mrope_interleaved": True,
            },
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": tokens["eos_token_id"],
        },
        tie_word_embeddings=True,
        **{name: value for name, value in tokens.items() if name != "eos_token_id"},
    )
    made._attn_implementation = "eager"
    return made


class Tiny(nn.Module):
    def __init__(self, made: Any) -> None:
        from transformers import Qwen3VLModel

        super().__init__()
        self.model = Qwen3VLModel(made)
        hidden = made.text_config.hidden_size

        def head(width: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Linear(hidden, hidden // 2), nn.LayerNorm(hidden // 2), nn.GELU(), nn.Dropout(0.0),
                nn.Linear(hidden // 2, width),
            )  # fmt: skip

        self.progress_head, self.success_head = head(BINS), head(1)
        self.image = made.image_token_id
        self.midway = torch.zeros(
            0, hidden
        )  # what a layer in the middle made of the pictures' tokens, in the last pass
        # Queries, keys and what each head made of its look, of each layer in the last pass.
        self.watched: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        self._begin(made.text_config.num_hidden_layers)
        order = torch.arange(GRID * GRID).view(CELLS, 2, CELLS, 2).permute(0, 2, 1, 3).reshape(-1)
        self.register_buffer("order", order, persistent=False)
        turn = made.vision_config.hidden_size // made.vision_config.num_heads // 2
        inverse = 1.0 / (10000.0 ** (torch.arange(0, turn, 2).float() / turn))
        places = torch.stack([order // GRID, order % GRID], -1).float()
        angles = torch.cat([places[:, :1] * inverse, places[:, 1:] * inverse], -1)
        angles = torch.cat([angles, angles], -1)
        self.register_buffer("tower_cos", angles.cos(), persistent=False)
        self.register_buffer("tower_sin", angles.sin(), persistent=False)

    def _begin(self, layers: int) -> None:
        """Weights as large as their width asks for: transformers' own beginning is too small for narrow layers."""
        narrow = ("o_proj", "down_proj", "attn.proj", "mlp.linear_fc2")
        for name, values in self.model.named_parameters():
            if "q_norm" in name:  # unit vectors of 32 numbers could not choose one token of hundreds
                nn.init.constant_(values, 2.0)
            if values.ndim < 2:
                continue
            if "embed_tokens" in name:
                nn.init.normal_(values, std=values.shape[1] ** -0.5)
            elif "pos_embed" in name:
                nn.init.normal_(values, std=0.3)
            elif "patch_embed" in name:
                nn.init.normal_(values, std=0.7 * (2 / values[0].numel()) ** 0.5)
            else:
                small = (2 * layers) ** -0.5 if any(part in name for part in narrow) else 1.0
                nn.init.normal_(values, std=values.shape[1] ** -0.5 * small)

    # -- tower -----------------------------------------------------------------------------------------------------

    def patches(self, pictures: Tensor) -> Tensor:
        """[N, SIDE, SIDE, 3] bytes to [N, patches, columns], in the order in which patches are merged."""
        x = pictures.float().sub_(127.5).div_(127.5)
        x = x.view(-1, CELLS, 2, PATCH, CELLS, 2, PATCH, 3).permute(0, 1, 4, 2, 5, 7, 3, 6)
        return x.reshape(x.shape[0], GRID * GRID, 3 * PATCH * PATCH)

    def tower(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features and taps [N, VISUAL, hidden], and the last layer's states [N, patches, width]."""
        v = self.model.visual
        weight = v.patch_embed.proj.weight.flatten(1)
        x = F.linear(patches, weight, v.patch_embed.proj.bias) + v.pos_embed.weight[self.order]
        count, length, width = x.shape
        taps = x
        for at, block in enumerate(v.blocks):
            a = block.attn
            q, k, value = a.qkv(block.norm1(x)).view(count, length, 3, a.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            q, k = _turned(q, self.tower_cos, self.tower_sin), _turned(k, self.tower_cos, self.tower_sin)
            seen = _attended(q, k, value, causal=False)
            x = x + a.proj(seen.transpose(1, 2).reshape(count, length, width))
            x = x + block.mlp(block.norm2(x))
            if at in v.deepstack_visual_indexes:
                merge = v.deepstack_merger_list[v.deepstack_visual_indexes.index(at)]
                taps = merge(x.reshape(-1, width))
        features = v.merger(x.reshape(-1, width))
        return features.view(count, VISUAL, -1), taps.view(count, VISUAL, -1), x

    # -- decoder ---------------------------------------------------------------------------------------------------

    def decoder(self, ids: Tensor, positions: Tensor, features: Tensor | None = None, taps: Tensor | None = None,
                past: list[Any] | None = None) -> Tensor:  # fmt: skip
        """ids [B, T], padded at the end; positions [3, B, T]; features and taps of all pictures in reading order."""
        text = self.model.language_model
        x = text.embed_tokens(ids)
        count, length, width = x.shape
        at = None
        if features is not None and features.shape[0]:
            at = (ids.flatten() == self.image).nonzero()[:, 0]
            x = (
                x.reshape(-1, width)
                .index_copy(0, at, features.reshape(-1, width).to(x.dtype))
                .view(count, length, width)
            )
        cos, sin = text.rotary_emb(x, positions)
        cos, sin = cos[:, None], sin[:, None]
        for number, layer in enumerate(text.layers):
            x = self._layer(layer, number, x, cos, sin, past)
            if number == _MIDWAY and past is None and at is not None:
                self.midway = x.reshape(-1, width)[at]
            if number == 0 and at is not None and taps is not None:
                x = (
                    x.reshape(-1, width)
                    .index_add(0, at, taps.reshape(-1, width).to(x.dtype))
                    .view(count, length, width)
                )
        return _norm(x, text.norm)

    def _layer(self, layer: Any, number: int, x: Tensor, cos: Tensor, sin: Tensor, past: list[Any] | None) -> Tensor:
        a = layer.self_attn
        count, length, _ = x.shape
        h = _norm(x, layer.input_layernorm)
        q = _turned(_norm(a.q_proj(h).view(count, length, -1, HEAD), a.q_norm).transpose(1, 2), cos, sin)
        k = _turned(_norm(a.k_proj(h).view(count, length, -1, HEAD), a.k_norm).transpose(1, 2), cos, sin)
        v = a.v_proj(h).view(count, length, -1, HEAD).transpose(1, 2)
        if past is not None:
            if past[number] is not None:
                k, v = torch.cat([past[number][0], k], 2), torch.cat([past[number][1], v], 2)
            past[number] = (k, v)
        several = q.shape[1] // k.shape[1]
        seen = _attended(q, k.repeat_interleave(several, 1), v.repeat_interleave(several, 1), causal=length > 1)
        if past is None:
            self.watched[number] = (q, k, seen)
        x = x + a.o_proj(seen.transpose(1, 2).reshape(count, length, -1))
        h = _norm(x, layer.post_attention_layernorm)
        m = layer.mlp
        return x + m.down_proj(F.silu(m.gate_proj(h)) * m.up_proj(h))

    def said_by(self, layer: int, head: int, seen: Tensor) -> Tensor:
        """The words that a head would say, if it alone had a say; `seen` [looks, HEAD] is what it made of its looks."""
        text = self.model.language_model
        weight = text.layers[layer].self_attn.o_proj.weight[:, head * HEAD : (head + 1) * HEAD]
        return self.logits(_norm(F.linear(seen, weight), text.norm))

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.model.language_model.embed_tokens.weight)

    def progress(self, hidden: Tensor) -> Tensor:
        return (self.progress_head(hidden).softmax(-1) * torch.linspace(0, 1, BINS)).sum(-1)

    def positions(self, ids: list[int]) -> NDArray[np.int64]:
        """M-RoPE: text counts on, a picture spans its own square."""
        made = np.zeros((3, len(ids)), np.int64)
        rows, columns = np.repeat(np.arange(CELLS), CELLS), np.tile(np.arange(CELLS), CELLS)
        here = at = 0
        while at < len(ids):
            if ids[at] == self.image:
                made[:, at : at + VISUAL] = np.stack([np.full(VISUAL, here), here + rows, here + columns])
                at, here = at + VISUAL, here + CELLS
            else:
                made[:, at] = here
                at, here = at + 1, here + 1
        return made

    @torch.no_grad()
    def write(
        self, prompts: list[list[int]], features: Tensor | None, taps: Tensor | None, most: int, end: int
    ) -> list[list[int]]:
        """Greedy replies to prompts of one length: what the engine writes, without its schema."""
        ids = torch.tensor(prompts)
        places = np.stack([self.positions(prompt) for prompt in prompts], 1)
        following = int(places.max()) + 1
        past: list[Any] = [None] * len(self.model.language_model.layers)
        hidden = self.decoder(ids, torch.from_numpy(places), features, taps, past)[:, -1]
        written, over = [], torch.zeros(len(prompts), dtype=torch.bool)
        for _ in range(most):
            token = self.logits(hidden).argmax(-1)
            written.append(token)
            over |= token == end
            if bool(over.all()):
                break
            hidden = self.decoder(token[:, None], torch.full((3, len(prompts), 1), following), past=past)[:, -1]
            following += 1
        rows = torch.stack(written, 1).tolist()
        return [row[: row.index(end)] if end in row else row for row in rows]


def _norm(x: Tensor, norm: Any) -> Tensor:
    return F.rms_norm(x.float(), (x.shape[-1],), norm.weight, 1e-6)


@lru_cache(maxsize=64)
def _mask(length: int) -> Tensor:
    return torch.full((length, length), -1e4, dtype=torch.bfloat16).triu(1)


def _attended(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> Tensor:
    """In half precision short rows are multiplied out: torch's fused backward pass is four times slower than that on a CPU."""
    if not torch.is_autocast_enabled("cpu") or q.shape[2] > 512:
        return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal)
    half = torch.bfloat16
    scores = (q * HEAD**-0.5).to(half) @ k.to(half).transpose(-1, -2)
    if causal:
        scores = scores + _mask(q.shape[2])
    return scores.softmax(-1, dtype=half) @ v.to(half)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin
