"""The numbers of a model: read from a checkpoint's config.json by the exporter, kept in the manifest, used by the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeVar

from compass_edge.errors import IntegrityError

Mixer = Literal["attention", "delta"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Tower:
    """A vision tower. One frame (or image) is one row of its batch."""

    depth: int
    hidden: int
    heads: int
    mlp: int
    out: int  # width of what it gives: the decoder's hidden size
    patch: int
    temporal: int
    merge: int
    positions: int = 0  # entries of a learned position table, a square; 0: there is none
    window: int = 0  # side in pixels of the windows in which most layers attend; 0: all layers see the whole frame
    full_layers: tuple[int, ...] = ()  # with windows: the layers that see the whole frame
    taps: tuple[int, ...] = ()  # layers whose output also reaches the decoder (DeepStack)

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    @property
    def columns(self) -> int:
        """Of a row of patches: channels x temporal x patch x patch."""
        return 3 * self.temporal * self.patch * self.patch


@dataclass(frozen=True, slots=True)
class Delta:
    """The gated delta rule of the hybrid models: a recurrent state instead of keys and values."""

    key_heads: int
    value_heads: int
    key: int  # width of a head
    value: int
    kernel: int  # of the causal convolution before it

    @property
    def channels(self) -> int:
        return 2 * self.key_heads * self.key + self.value_heads * self.value


@dataclass(frozen=True, slots=True)
class Decoder:
    hidden: int
    mlp: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    epsilon: float
    theta: float
    rotary: int  # of a head's width, how much is rotated
    sections: tuple[int, int, int]  # of half of that: time, height, width
    interleaved: bool  # sections alternate (Qwen3), or lie one after the other (Qwen2.5)
    mixers: tuple[Mixer, ...]  # one a layer
    delta: Delta | None = None
    taps: int = 0  # layers after which the tower's taps are added
    positions: int = 32768  # the longest sequence that the graph's rotation table knows
    longest: int = 0  # new tokens that one pass takes at most; 0: any number

    @property
    def layers(self) -> int:
        return len(self.mixers)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Ids that mean something to the engine."""

    image: int
    video: int
    progress: int = -1  # RoboMeter's, behind each frame


@dataclass(frozen=True, slots=True)
class Architecture:
    tower: Tower
    decoder: Decoder
    tokens: Tokens
    seconds: float = 0.0  # positions a second of video; 0: frames of a video are positioned like images

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Architecture:
        try:
            decoder = dict(values["decoder"])
            decoder["delta"] = _made(Delta, decoder["delta"]) if decoder.get("delta") else None
            return cls(
                _made(Tower, values["tower"]),
                _made(Decoder, decoder),
                _made(Tokens, values["tokens"]),
                float(values["seconds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise IntegrityError(
                f"The manifest's architecture cannot be read ({error!r}). Export the model again with this version."
            ) from error


def _made(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """JSON has lists where we have tuples."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := set(values) - known:
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
