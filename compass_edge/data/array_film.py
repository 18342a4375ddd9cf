"""A film in an HDF5 file: RGB arrays, or one JPEG a frame. One picture at a time, never the whole file in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compass_edge.data.film import Picture
from compass_edge.data.film_ticks import FilmTicks
from compass_edge.data.hdf5 import DAMAGE, damaged, dataset_at, open_hdf5
from compass_edge.data.jpeg import decode_jpeg
from compass_edge.data.picture_feed import picture_source
from compass_edge.errors import EnvironmentFault, IntegrityError, UsageError
from compass_edge.loop.settings import Settings

_EXPECTED = "pictures as (frames, height, width, 3) uint8 or one JPEG a frame"
_AT_ONCE = 16  # frames that are hashed together


class ArrayFilm:
    """Implements compass_edge.data.film.Film.

    `swapped`: the JPEGs were written by OpenCV straight from RGB. `flip`: the pictures are upside down.
    """

    def __init__(
        self, path: Path | str, dataset: str, *, fps: float, swapped: bool = False, flip: bool = False
    ) -> None:
        self.path, self.dataset, self.fps = Path(path), dataset, fps
        self.swapped, self.flip = swapped, flip
        self._key = ""
        with open_hdf5(self.path) as file:
            self.frames = int(self._rows(file).shape[0])

    @property
    def key(self) -> str:
        """Of the pictures alone: the same ones in another file, or beside other data, are the same film."""
        if not self._key:
            hashed = hashlib.blake2b(f"swapped={self.swapped} flip={self.flip}".encode(), digest_size=16)
            with open_hdf5(self.path) as file:
                rows = self._rows(file)
                hashed.update(f"{rows.shape}".encode())
                for first in range(0, self.frames, _AT_ONCE):
                    for row in self._read(rows, slice(first, first + _AT_ONCE)):
                        data = _bytes_of(row)
                        hashed.update(len(data).to_bytes(8, "little"))
                        hashed.update(data)
            self._key = hashed.hexdigest()
        return self._key

    def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        if every < 1:
            raise UsageError(f"Every n-th frame needs an n of at least 1, and {every} came.")
        with open_hdf5(self.path) as file:
            rows = self._rows(file)
            for number in range(0, self.frames if stop is None else min(stop, self.frames), every):
                yield number, self._picture(self._read(rows, number), number)

    def ticks(self, settings: Settings, stop: int | None = None) -> FilmTicks:
        stop = self.frames if stop is None else min(stop, self.frames)
        first = next(picture for _, picture in self.pictures(stop=1))
        height, width = first.shape[:2]
        pictures = (picture for _, picture in self.pictures(stop=stop))
        source = picture_source(str(self.path), pictures, width=width, height=height, fps=self.fps, frames=stop)
        return FilmTicks(source, settings, self.key)

    def _rows(self, file: Any) -> Any:
        rows = dataset_at(file, self.dataset, self.path, _EXPECTED)
        raw = rows.ndim == 4 and rows.shape[3] == 3 and rows.dtype == np.uint8 and min(rows.shape) > 0
        encoded = rows.ndim == 1 and rows.dtype.kind in "SO"
        padded = rows.ndim == 2 and rows.dtype == np.uint8
        if not (raw or encoded or padded) or not rows.shape[0]:
            raise IntegrityError(
                f"'{self.path}': the key '{self.dataset}' should be {_EXPECTED}, and {rows.dtype} of the shape "
                f"{rows.shape} came."
            )
        return rows

    def _read(self, rows: Any, which: int | slice) -> Any:
        try:
            return rows[which]
        except DAMAGE as error:
            raise damaged(self.path, self.dataset, error) from error

    def _picture(self, row: Any, number: int) -> Picture:
        if isinstance(row, np.ndarray) and row.ndim == 3:
            picture: Picture = row
        else:
            try:
                picture = decode_jpeg(_bytes_of(row), swapped=self.swapped)
            except EnvironmentFault:
                raise
            except ValueError as error:
                raise IntegrityError(
                    f"'{self.path}': frame {number} of the key '{self.dataset}' cannot be read: {error}."
                ) from error
        return np.ascontiguousarray(picture[::-1] if self.flip else picture)


def _bytes_of(row: Any) -> bytes:
    return row.tobytes() if isinstance(row, np.ndarray) else bytes(row)
