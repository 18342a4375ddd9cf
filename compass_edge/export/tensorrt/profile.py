"""How large what goes through an engine may be: the axes of both graphs, from what a camera and a prompt bring.

The axes have the names that the exporter gave them: F frames of P patches (M tokens) through the tower; B sequences of S
tokens through the decoder, read at N places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compass_edge.engines.architecture import Architecture
from compass_edge.engines.engine_record import Span
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.self_test import GOLDEN_PICTURE, SAMPLES
from compass_edge.errors import UsageError
from compass_edge.frames.native import native

_MARKS = 16  # tokens around a picture: its number, its frame, the progress token


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine is built for. More memory is planned with every one of them."""

    frames: int = 8  # of a clip
    batch: int = 1  # clips at once
    width: int = 640  # of the largest picture
    height: int = 480
    words: int = 384  # tokens of a prompt besides its pictures: the model's own take about 90

    def __post_init__(self) -> None:
        for name, most in (("frames", 64), ("batch", 64), ("width", 8192), ("height", 8192), ("words", 8192)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise UsageError(f"{name} must be a whole number from 1 to {most}, and {value!r} came.")


def profiles(manifest: Manifest, limits: Limits) -> dict[str, dict[str, Span]]:
    """Of each part. Always wide enough for the question of the manifest, which is asked at build and at load."""
    architecture = Architecture.from_dict(manifest.architecture)
    merge = architecture.tower.merge**2
    settings = dict(manifest.preprocessing)
    grid = (
        native()
        .Preprocessor(**{**settings, "mean": tuple(settings["mean"]), "std": tuple(settings["std"])}, dtype="f32")
        .grid
    )

    def patches(width: int, height: int) -> int:
        rows, columns = grid(width, height)
        return int(rows * columns)

    least = merge  # one token: the smallest grid that there is
    usual = patches(limits.width, limits.height)
    most = max(usual, patches(*GOLDEN_PICTURE))
    tokens = limits.frames * (usual // merge + _MARKS) + limits.words
    longest = max(tokens, len(manifest.golden.get("ids", ())))
    if longest > architecture.decoder.positions:
        raise UsageError(
            f"{limits.frames} frames of {limits.width}x{limits.height} and {limits.words} tokens of text are {longest} tokens, and "
            f"'{manifest.name}' was exported for {architecture.decoder.positions}. Build it for fewer or smaller frames, or "
            "export it with more --positions."
        )
    usual_tokens = limits.frames * (usual // merge + _MARKS // 2) + min(limits.words, 128)
    return {
        "vision": {
            "F": (1, limits.frames, max(limits.frames, 2)),
            "P": (least, usual, most),
            "M": (1, usual // merge, most // merge),
        },
        "decoder": {
            "B": (1, limits.batch, limits.batch),
            "S": (1, min(usual_tokens, longest), longest),
            "N": (1, 1, max(SAMPLES, limits.frames)),
        },
    }


def span(axis: str, profile: Mapping[str, Span], part: str) -> Span:
    if axis not in profile:
        raise UsageError(
            f"The {part} graph has an axis '{axis}', and engines are built for {', '.join(profile)} alone: it is no vision tower "
            "or reward model of the standard dialect. Export the model again with this version."
        )
    return profile[axis]
