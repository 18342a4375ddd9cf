"""An image to the patches that a vision tower reads, and where they lie; the same whatever runs the tower."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Tower
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.places import Inputs, places
from compass_edge.errors import IntegrityError, UsageError
from compass_edge.frames.native import native
from compass_edge.models import Image


class Patcher:
    def __init__(self, folder: Path, manifest: Manifest, tower: Tower, *, half: bool) -> None:
        self._tower, self._half = tower, half
        try:
            self.settings = {**manifest.preprocessing, "dtype": "f16" if half else "f32"}
            for name in ("mean", "std"):
                self.settings[name] = tuple(self.settings[name])
            self._preprocess = native().Preprocessor(**self.settings)
        except (TypeError, ValueError, KeyError) as error:
            raise IntegrityError(
                f"The preprocessing in '{folder / 'manifest.json'}' cannot be used: {error}."
            ) from error
        # Towers with one graph, one set of weights and one preprocessing give the same features of a frame that becomes as
        # large; how large depends on the limits of either.
        files = [manifest.files[name].sha256 for name in sorted(manifest.files) if name.startswith("vision.onnx")]
        same = sorted(self.settings.keys() - {"min_pixels", "max_pixels"})
        self.name = ",".join([*files, *(f"{key}={self.settings[key]}" for key in same)])
        self.places = lru_cache(maxsize=16)(self._made_places)

    def grid(self, image: Image) -> tuple[int, int]:
        """Rows and columns of the tokens that the decoder reads for it."""
        width, height = _size(image)
        rows, columns = self._preprocess.grid(width, height)
        return rows // self._tower.merge, columns // self._tower.merge

    def run(self, image: Image) -> NDArray[Any]:
        """[patches, columns of a patch]"""
        made: NDArray[Any] = self._preprocess.run(_pixels(image))
        return made

    def _made_places(self, rows: int, columns: int) -> Inputs:
        """Of a grid of rows x columns patches."""
        made = places(self._tower, rows, columns)
        if self._half:
            made = {
                name: value.astype(np.float16) if value.dtype == np.float32 else value for name, value in made.items()
            }
        return made


def _pixels(image: Image) -> Any:
    if image.pixels is None:
        raise UsageError(
            f"The image {image.digest} has no pixels: an engine needs a frame or an RGB array of uint8, [height, width, 3]."
        )
    return image.pixels


def _size(image: Image) -> tuple[int, int]:
    pixels = _pixels(image)
    if hasattr(pixels, "width"):
        return int(pixels.width), int(pixels.height)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise UsageError(
            f"The pixels of an image must be RGB of uint8, [height, width, 3], and {pixels.dtype} {list(pixels.shape)} came."
        )
    return int(pixels.shape[1]), int(pixels.shape[0])
