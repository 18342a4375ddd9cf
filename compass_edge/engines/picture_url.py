"""A picture as a data URL: the only form in which one leaves this process, since a server that fetches URLs can be led astray."""

from __future__ import annotations

import base64
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import av
import numpy as np
from numpy.typing import NDArray

from compass_edge.errors import UsageError
from compass_edge.models import Image

Format: TypeAlias = Literal["jpeg", "png"]
# The formats that the encoders take: JPEG has full-range YCbCr with halved colour, PNG every pixel as it is.
_ENCODERS = {"jpeg": ("mjpeg", "yuvj420p"), "png": ("png", "rgb24")}


def picture_url(image: Image, format: Format = "jpeg", *, max_side: int = 0, quality: int = 90) -> str:
    """The same picture and settings give the same text. `max_side` shrinks a larger picture; 0 leaves it as it is."""
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(_rgb(image)), format="rgb24")
    encoder, pixel_format = _ENCODERS[format]
    width, height = _fitted(frame.width, frame.height, max_side)
    frame = frame.reformat(width=width, height=height, format=pixel_format, interpolation="AREA")
    codec: Any = av.CodecContext.create(encoder, "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = width, height, pixel_format, Fraction(1, 1)
    codec.thread_count = 1
    if format == "jpeg":  # the encoder counts from 1, the best, to 31
        codec.qmin = codec.qmax = 1 + round((100 - quality) * 0.3)
    data = b"".join(bytes(packet) for packet in (*codec.encode(frame), *codec.encode(None)))
    return f"data:image/{format};base64,{base64.b64encode(data).decode('ascii')}"


def _rgb(image: Image) -> NDArray[np.uint8]:
    if image.pixels is None:
        raise UsageError(
            f"The image {image.digest} must bring its pixels, and it came without any. Ask before the frame is let go."
        )
    pixels: NDArray[np.uint8] = image.pixels.rgb() if hasattr(image.pixels, "rgb") else image.pixels
    fits = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3
    if not fits or not pixels.size:
        came = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise UsageError(
            f"The pixels of the image {image.digest} must be a frame or a uint8 array of height, width and 3 colours, and "
            f"{came} came."
        )
    return pixels


def _fitted(width: int, height: int, max_side: int) -> tuple[int, int]:
    side = max(width, height)
    if not max_side or side <= max_side:
        return width, height
    return max(1, round(width * max_side / side)), max(1, round(height * max_side / side))
