"""The film writer: pictures into an mp4, the same bytes for the same pictures on one FFmpeg, as a rule.

with FilmWriter("R1/3.mp4", fps=10, width=448, height=448) as film:
    film.add(rgb)

The file appears under its name when the last picture is in it; a run that is killed or fails leaves no half film.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import av
import numpy as np

from compass_edge.data.film import Picture
from compass_edge.data.part import part_of
from compass_edge.errors import UsageError


class FilmWriter:
    """h264 in yuv420p, or mpeg4 where FFmpeg has no libx264. `crf`: 0 is lossless but for the colours, 51 the worst."""

    def __init__(self, path: Path | str, fps: float, width: int, height: int, crf: int = 18) -> None:
        if not (math.isfinite(fps) and fps > 0):
            raise UsageError(f"A film needs a frame rate above 0, and {fps} came.")
        if width < 2 or height < 2 or width % 2 or height % 2:
            raise UsageError(f"A film in yuv420p needs an even width and height, and {width}x{height} came.")
        if not 0 <= crf <= 51:
            raise UsageError(f"crf goes from 0 to 51, and {crf} came.")
        self.path = Path(path)
        self.frames = 0
        self._partial = part_of(self.path)
        self._shape = (height, width, 3)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._container: Any = av.open(str(self._partial), "w", format="mp4")
        codec, options = "libx264", {"crf": str(crf)}
        if "libx264" not in av.codecs_available:
            worst = str(2 + 29 * crf // 51)
            codec, options = "mpeg4", {"qmin": worst, "qmax": worst}
        # One thread: with more, an encoder may cut a picture into other slices.
        options["threads"] = "1"
        rate = Fraction(fps).limit_denominator(100_000)
        stream: Any = self._container.add_stream(codec, rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        self._stream = stream

    def add(self, rgb: Picture) -> None:
        if rgb.shape != self._shape or rgb.dtype != np.uint8:
            raise UsageError(
                f"'{self.path.name}' takes uint8 pictures of the shape {self._shape}, and {rgb.dtype} of {rgb.shape} came."
            )
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
        self._container.mux(self._stream.encode(frame))
        self.frames += 1

    def close(self) -> None:
        """Finishes the file and gives it its name."""
        if self._container is None:
            return
        if not self.frames:
            self.discard()
            raise UsageError(f"'{self.path.name}' has no picture: a film needs one at least.")
        self._container.mux(self._stream.encode())
        self._container.close()
        self._container = None
        self._partial.replace(self.path)

    def discard(self) -> None:
        """Ends without a file."""
        if self._container is not None:
            self._container.close()
            self._container = None
            self._partial.unlink(missing_ok=True)

    def __enter__(self) -> FilmWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
