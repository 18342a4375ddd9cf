"""A part of an arrangement: a model, who plays it, on which engine, kept how, within which limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compass_edge.boards.shape import Shape, find_shape
from compass_edge.loop.events import Role

Engine = Literal["onnx", "tensorrt", "edgellm", "server"]
ENGINES: dict[Engine, str] = {
    "onnx": "ONNX Runtime",
    "tensorrt": "TensorRT",
    "edgellm": "TensorRT Edge-LLM's server",
    "server": "an OpenAI-compatible server",
}
FRAME_TOKENS = 300  # of a picture of 640 x 480
_SLOTS, _PROGRESS_TOKENS, _PROMPT = 8, 8, 96  # of RoboMeter: frames of a clip, text around each, and before all
PRM_CONTEXT = _SLOTS * (FRAME_TOKENS + _PROGRESS_TOKENS) + _PROMPT


@dataclass(frozen=True, slots=True)
class Limits:
    context: int  # tokens of a sequence, the reply included
    prompt: int  # of them, those that are read in one pass
    rows: int = 1  # sequences whose keys, values and states are kept; 0: none, for one pass without a reply
    frames: int = 0  # whose features are kept; 0: the engine keeps none
    pictures: int = 1  # that go through the tower at once
    snapshots: int = 0  # bytes of recurrent states along a prompt


@dataclass(frozen=True, slots=True)
class Formats:
    """Names of compass_edge.boards.number_format. `head` is the output layer's."""

    decoder: str
    head: str = "fp16"
    embedding: str = "fp16"
    vision: str = "fp16"
    cache: str = "fp16"  # keys, values, and what is computed in between


@dataclass(frozen=True, slots=True)
class Part:
    roles: tuple[Role, ...]
    model: str
    engine: Engine
    formats: Formats
    limits: Limits
    mtp: bool = False  # the model's own draft layer, for speculative decoding

    @property
    def shape(self) -> Shape:
        return find_shape(self.model)

    @property
    def title(self) -> str:
        return f"{' and '.join(self.roles)}: {self.model}, {self.formats.decoder}, {ENGINES[self.engine]}"

    @property
    def stored(self) -> str:
        """Its name in the store of exported models: two precisions of one checkpoint are two models."""
        return f"{self.model}-{self.formats.decoder}"


@dataclass(frozen=True, slots=True)
class Arrangement:
    name: str
    parts: tuple[Part, ...]

    def part(self, role: Role) -> Part:
        return next(part for part in self.parts if role in part.roles)

    @property
    def summary(self) -> str:
        return "; ".join(part.title for part in self.parts)
