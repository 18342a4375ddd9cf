"""Growth: a decoder with more heads that computes what it computed before. What is new has no say until it has learned something.

A new group of heads has its own keys and values in every layer; the part of the output that it would add is nothing. So a skill can be
taught to new heads without taking old ones from what they do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.model import HEAD, Size, Tiny

_LAYER = "model.language_model.layers.0.self_attn."


def size_of(states: dict[str, Tensor]) -> Size:
    """How many heads the decoder of a checkpoint has."""
    heads, groups = (states[f"{_LAYER}{name}.weight"].shape[0] // HEAD for name in ("q_proj", "k_proj"))
    return Size(heads=heads, kv_heads=groups)


def grown(states: dict[str, Tensor], size: Size) -> dict[str, Tensor]:
    """The same decoder with as many heads as `size` has; as it is, if it has them."""
    chance = torch.Generator().manual_seed(0)
    rows = {"q_proj": size.heads * HEAD, "k_proj": size.kv_heads * HEAD, "v_proj": size.kv_heads * HEAD}

    def wider(name: str, values: Tensor) -> Tensor:
        part = name.split(".")[-2]
        if "language_model" not in name or name.rsplit(".", maxsplit=1)[-1] != "weight":
            return values
        if part in rows and values.shape[0] < rows[part]:
            new = torch.randn(rows[part] - values.shape[0], values.shape[1], generator=chance)
            return torch.cat([values, new * values.shape[1] ** -0.5])
        if part == "o_proj" and values.shape[1] < rows["q_proj"]:
            return torch.cat([values, values.new_zeros(values.shape[0], rows["q_proj"] - values.shape[1])], 1)
        return values

    return {name: wider(name, values) for name, values in states.items()}


def new_parts(model: Tiny, before: Size) -> dict[str, Tensor]:
    """Of each of the decoder's parameters that has grown from `before`: 1 where it is new, 0 where it was there."""
    rows = {"q_proj": before.heads * HEAD, "k_proj": before.kv_heads * HEAD, "v_proj": before.kv_heads * HEAD}
    found = {}
    for name, values in model.named_parameters():
        part = name.split(".")[-2]
        if "language_model" in name and part in (*rows, "o_proj"):
            new = torch.ones_like(values)
            if part == "o_proj":
                new[:, : rows["q_proj"]] = 0
            else:
                new[: rows[part]] = 0
            if new.any():
                found[name] = new
    return found
