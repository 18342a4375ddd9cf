"""A generated clip, so that everything can be tried without a camera or a download.

A square crosses a textured table, and a bar along the top edge spells the frame's number in black and white cells: a
decoder that drops, repeats or reorders frames is found out by reading the pictures.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BITS = 16


def clip_frame(number: int, width: int = 640, height: int = 480) -> NDArray[np.uint8]:
    """Frame `number` of the clip as an (H, W, 3) uint8 array."""
    y, x = np.mgrid[0:height, 0:width]
    table = 96 + 40 * np.sin(x / 37.0) * np.cos(y / 23.0) + 8 * np.sin((x + 2 * y) / 5.0)
    picture = np.stack([table + 30, table + 10, table - 20], axis=-1)
    side = max(8, min(width, height) // 6)
    left = (number * 4) % max(1, width - side)
    top = height // 2 - side // 2
    picture[top : top + side, left : left + side] = (200, 60, 40)
    cell = width // _BITS
    for bit in range(_BITS):
        picture[: max(8, height // 16), bit * cell : (bit + 1) * cell] = 235 if number >> bit & 1 else 20
    return picture.clip(0, 255).astype(np.uint8)


def read_number(picture: NDArray[np.uint8]) -> int:
    """The frame number that a decoded picture of the clip shows (RGB, or its luma plane)."""
    luma = picture if picture.ndim == 2 else picture.mean(axis=-1)
    height, width = luma.shape
    cell, row = width // _BITS, max(8, height // 16) // 2
    return sum(1 << bit for bit in range(_BITS) if luma[row, bit * cell + cell // 2] > 128)


def write_clip(
    path: Path | str,
    *,
    frames: int = 90,
    width: int = 640,
    height: int = 480,
    rate: int = 30,
    codec: str | None = None,
    pixel_format: str = "yuv420p",
    options: dict[str, str] | None = None,
    muxer: dict[str, str] | None = None,
    pts: list[int] | None = None,
    rotation: int = 0,
) -> Path:
    """Encode the clip with PyAV, as h264 unless told otherwise.

    `options` go to the encoder, `muxer` to the container. `pts` in units of 1/1000 s makes a variable frame rate;
    `rotation` only marks the file.
    """
    import av

    path = Path(path)
    codec = codec or ("libx264" if "libx264" in av.codecs_available else "mpeg4")
    with av.open(str(path), "w", options=muxer or {}) as container:
        stream: Any = container.add_stream(codec, rate=rate, options=options or {})
        stream.width, stream.height, stream.pix_fmt = width, height, pixel_format
        if pts is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(float(-rotation))
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(clip_frame(number, width, height), format="rgb24")
            if pts is not None:
                frame.pts, frame.time_base = pts[number], Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
