"""A PyAV frame as the planes of a ring format, upright."""

from __future__ import annotations

from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray

_SAME_LAYOUT = {
    "yuv420p": "yuv420p",
    "yuvj420p": "yuv420p",
    "nv12": "nv12",
    "yuyv422": "yuyv",
    "rgb24": "rgb24",
    "gray": "gray8",
}
_AV_NAMES = {"yuv420p": "yuv420p", "rgb24": "rgb24", "gray8": "gray"}
_SAMPLE_BYTES = {"yuv420p": (1, 1, 1), "nv12": (1, 2), "yuyv": (4,), "rgb24": (3,), "gray8": (1,)}
_HALVED = {"yuv420p": (1, 2), "nv12": (1,), "yuyv": (0,)}  # planes with one sample for two pixels of a row
_MATRICES = {1: "bt709", 9: "bt2020", 10: "bt2020"}  # FFmpeg's AVColorSpace; the rest is taken as BT.601
_FULL_RANGE = 2  # FFmpeg's AVCOL_RANGE_JPEG


def ring_format(av_format: str) -> str:
    """The ring format that keeps most of it: rgb24 for RGB, gray8 for gray, yuv420p for the rest."""
    if av_format in _SAME_LAYOUT:
        return _SAME_LAYOUT[av_format]
    if av_format.startswith(("gray", "ya8", "ya16", "mono")):
        return "gray8"
    return "rgb24" if any(part in av_format for part in ("rgb", "bgr", "gbr", "pal8", "bayer")) else "yuv420p"


def quarter_turns(frame: av.VideoFrame) -> int:
    """Clockwise quarter turns that bring it upright."""
    return round(-frame.rotation / 90) % 4


@dataclass(frozen=True, slots=True)
class Picture:
    planes: list[NDArray[np.uint8]]
    format: str
    width: int
    height: int
    matrix: str
    range: str
    converted: bool


def upright_picture(frame: av.VideoFrame) -> Picture:
    """Views of PyAV's memory where format and orientation allow it, copies otherwise."""
    turns = quarter_turns(frame)
    source_format = frame.format.name
    format = ring_format(source_format)
    if format == "yuyv" and turns:
        format = "yuv420p"
    matrix = _MATRICES.get(frame.colorspace, "bt601")
    full = source_format.startswith("yuvj") or frame.color_range == _FULL_RANGE
    full = full or (format == "gray8" and frame.color_range == 0)
    same = _SAME_LAYOUT.get(source_format) == format
    if not same:
        frame = frame.reformat(format=_AV_NAMES[format])
    planes = [_bytes_of(frame, format, index) for index in range(len(_SAMPLE_BYTES[format]))]
    if turns:
        planes = [_turned(plane, sample, turns) for plane, sample in zip(planes, _SAMPLE_BYTES[format], strict=True)]
    width, height = (frame.height, frame.width) if turns % 2 else (frame.width, frame.height)
    return Picture(planes, format, width, height, matrix, "full" if full else "limited", not same or turns != 0)


def _bytes_of(frame: av.VideoFrame, format: str, index: int) -> NDArray[np.uint8]:
    plane = frame.planes[index]
    halved = index in _HALVED.get(format, ())
    columns = (frame.width + 1) // 2 if halved else frame.width
    rows = (frame.height + 1) // 2 if halved and format != "yuyv" else frame.height
    lines = np.frombuffer(memoryview(plane), np.uint8)[: rows * plane.line_size].reshape(rows, plane.line_size)
    return lines[:, : columns * _SAMPLE_BYTES[format][index]]


def _turned(plane: NDArray[np.uint8], sample_bytes: int, turns: int) -> NDArray[np.uint8]:
    pixels = plane.reshape(plane.shape[0], -1, sample_bytes)
    upright = np.ascontiguousarray(np.rot90(pixels, -turns))
    return upright.reshape(upright.shape[0], -1)
