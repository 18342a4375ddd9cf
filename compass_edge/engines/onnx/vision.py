"""The vision tower: frames to features, frames of one size in one run, a frame never twice while it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Tower
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.feature_store import Features, FeatureStore
from compass_edge.engines.onnx.patcher import Patcher
from compass_edge.engines.onnx.session import Options, open_session
from compass_edge.models import Image

_AT_ONCE = 8  # frames of a run: more gain nothing on a CPU and cost memory


class Vision:
    def __init__(self, folder: Path, manifest: Manifest, tower: Tower, options: Options, store: FeatureStore) -> None:
        self._tower, self._store = tower, store
        self._session = open_session(folder / "vision.onnx", options)
        half = "16" in next(value.type for value in self._session.get_inputs() if value.name == "patches")
        self._patcher = Patcher(folder, manifest, tower, half=half)
        self.grid = self._patcher.grid
        self.passes = 0  # frames that went through the tower

    def features(self, images: Sequence[Image]) -> list[Features]:
        found: dict[str, Features] = {}
        missing: dict[tuple[int, int], dict[str, Image]] = {}
        for image in images:
            grid = self.grid(image)
            kept = self._store.get(self._key(image, *grid))
            if kept is not None:
                found[image.digest] = kept
            else:
                missing.setdefault(grid, {})[image.digest] = image
        for (rows, columns), group in missing.items():
            pictures = list(group.values())
            for start in range(0, len(pictures), _AT_ONCE):
                some = pictures[start : start + _AT_ONCE]
                for image, made in zip(some, self._encode(some, rows, columns), strict=True):
                    found[image.digest] = made
                    self._store.put(self._key(image, rows, columns), made)
        return [found[image.digest] for image in images]

    def prepare(self, images: Sequence[Image]) -> None:
        """Encodes them ahead, several at a time, while there is room to keep them."""
        for start in range(0, len(images), _AT_ONCE):
            made = self.features(images[start : start + _AT_ONCE])
            if self._store.room < sum(features.nbytes for features in made):
                return

    def _key(self, image: Image, rows: int, columns: int) -> tuple[str, str]:
        return self._patcher.name, f"{rows}x{columns} {image.digest}"

    def _encode(self, images: Sequence[Image], rows: int, columns: int) -> list[Features]:
        patches = np.stack([self._patcher.run(image) for image in images])
        merge = self._tower.merge
        return self.encode_patches(patches, rows * merge, columns * merge)

    def encode_patches(self, patches: NDArray[Any], rows: int, columns: int) -> list[Features]:
        """[frames, patches, columns of a patch], of a grid of rows x columns patches."""
        outputs = self._session.run(None, {"patches": patches, **self._patcher.places(rows, columns)})
        self.passes += len(patches)
        embeddings, taps = outputs[0], outputs[1] if len(outputs) > 1 else None
        merge = self._tower.merge
        return [
            Features(
                embeddings[at],
                None if taps is None else np.ascontiguousarray(taps[:, at]),
                rows // merge,
                columns // merge,
            )
            for at in range(len(patches))
        ]
