"""Shapes of models: what of a checkpoint's config.json decides how much memory it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from compass_edge.errors import UsageError

_TABLE = Path(__file__).with_name("shapes.json")
_MERGE = 4  # patches that become one token
_COLUMNS = 1536  # values of a patch: 3 channels x 2 frames x 16 x 16
_PLACES = 2304  # entries of the table of positions


@dataclass(frozen=True, slots=True)
class VisionShape:
    depth: int
    hidden: int
    mlp: int
    out: int
    taps: int

    @property
    def parameters(self) -> int:
        wide = _MERGE * self.hidden
        block = 4 * self.hidden**2 + 4 * self.hidden + 2 * self.hidden * self.mlp + self.mlp + 5 * self.hidden
        merger = wide**2 + wide + wide * self.out + self.out
        return (
            (_COLUMNS + 1) * self.hidden
            + _PLACES * self.hidden
            + self.depth * block
            + merger
            + 2 * self.hidden
            + self.taps * (merger + 2 * wide)
        )


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """Of the layers that keep a state instead of keys and values: all but each `every`th."""

    every: int
    key_heads: int
    value_heads: int
    key: int
    value: int
    kernel: int

    @property
    def channels(self) -> int:
        return 2 * self.key_heads * self.key + self.value_heads * self.value


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    checkpoint: str  # on the model hubs
    layers: int
    hidden: int
    mlp: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    vision: VisionShape
    source: str
    delta: DeltaShape | None = None
    read_outs: tuple[int, ...] = ()  # widths of the heads that a progress model has instead of an output layer
    tied: bool = True
    estimated: bool = False

    @property
    def attention_layers(self) -> int:
        return self.layers // self.delta.every if self.delta else self.layers

    @property
    def delta_layers(self) -> int:
        return self.layers - self.attention_layers

    @property
    def query(self) -> int:
        """Columns of the query's matrix; the hybrid models' has a gate beside each head."""
        return self.heads * self.head * (2 if self.delta else 1)

    @property
    def words(self) -> int:
        """Weights of the table of embeddings, and of the output layer."""
        return self.vocabulary * self.hidden

    @property
    def read_out_weights(self) -> int:
        half = self.hidden // 2
        heads = sum(self.hidden * half + 3 * half + half * width + width for width in self.read_outs)
        return heads + self.hidden if self.read_outs else 0

    def matrices(self, *, mtp: bool = False) -> int:
        """Weights of the decoder's matrices: those that are quantized."""
        attention = self.hidden * (self.query + 2 * self.kv_heads * self.head) + self.heads * self.head * self.hidden
        total = self.attention_layers * attention + self.layers * 3 * self.hidden * self.mlp
        if self.delta:
            inner = self.delta.value_heads * self.delta.value
            total += self.delta_layers * self.hidden * (self.delta.channels + 2 * inner)
        return total + (attention + 3 * self.hidden * self.mlp + 2 * self.hidden**2 if mtp else 0)

    def rest(self, *, mtp: bool = False) -> int:
        """Norms, convolutions, gates: what stays in fp16."""
        norms = 2 * self.hidden
        total = self.attention_layers * 2 * self.head + self.layers * norms + self.hidden
        if self.delta:
            gates = 2 * self.hidden * self.delta.value_heads + 2 * self.delta.value_heads + self.delta.value
            total += self.delta_layers * (gates + self.delta.channels * self.delta.kernel)
        return total + (norms + 2 * self.head + 3 * self.hidden if mtp else 0)

    def parameters(self, *, mtp: bool = False) -> int:
        """As a checkpoint counts them."""
        outputs = 0 if self.tied else self.words
        return self.matrices(mtp=mtp) + self.rest(mtp=mtp) + self.words + outputs + self.vision.parameters

    def kv_values(self, *, mtp: bool = False) -> int:
        """Numbers that a token leaves behind in the layers that attend."""
        return (self.attention_layers + (1 if mtp else 0)) * 2 * self.kv_heads * self.head

    @property
    def state_values(self) -> int:
        """Numbers of a sequence's recurrent state, however long it is."""
        if self.delta is None:
            return 0
        state = self.delta.value_heads * self.delta.key * self.delta.value
        return self.delta_layers * (state + (self.delta.kernel - 1) * self.delta.channels)


@cache
def shapes() -> Mapping[str, Shape]:
    document = json.loads(_TABLE.read_text("utf-8"))
    return {row["name"]: _shape(row) for row in document["models"]}


def _shape(row: Mapping[str, Any]) -> Shape:
    return Shape(
        name=row["name"],
        checkpoint=row["checkpoint"],
        **row["decoder"],
        vision=VisionShape(**row["vision"]),
        source=row["source"],
        delta=DeltaShape(**row["delta"]) if "delta" in row else None,
        read_outs=tuple(row.get("read_outs", ())),
        estimated=row.get("estimated", False),
    )


def find_shape(name: str) -> Shape:
    known = shapes()
    if name not in known:
        raise UsageError(f"The shape of the model '{name}' is not known. Known are: {', '.join(known)}.")
    return known[name]
