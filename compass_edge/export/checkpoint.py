"""A checkpoint as model hubs have it, read one tensor at a time."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.export.safetensors_file import SafetensorsFile
from compass_edge.export.weight_files import INDEX, read_object, require_folder, weight_files

_BLOCK = 4 << 20


class Checkpoint:
    """A folder in the hub's layout: config.json and safetensors, one file or shards with model.safetensors.index.json.

    Read lazily: headers when it is opened, a tensor when it is asked for, and nothing stays in memory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        try:
            require_folder(self.folder)
            paths, places = weight_files(self.folder)
            if not (self.folder / "config.json").exists():
                raise UsageError(
                    f"'{self.folder}' has no config.json, which says what the weights are. Fetch it from where the weights came from."
                )
        except OSError as error:
            raise CompassError(f"'{self.folder}' cannot be read: {error.strerror or error}.") from error
        self.config: dict[str, Any] = read_object(self.folder / "config.json")
        self._weights = [SafetensorsFile(path) for path in paths]
        self._where: dict[str, SafetensorsFile] = {}
        self._on_read: Callable[[int], None] | None = None
        self._read = 0
        for file in self._weights:
            for name in file.tensors:
                if name in self._where:
                    other = self._where[name].path.name
                    raise IntegrityError(
                        f"The tensor '{name}' is in {other} and in {file.path.name} of '{self.folder}': one of them belongs to "
                        "another checkpoint. Fetch it again into an empty folder."
                    )
                self._where[name] = file
        for name, shard in places.items():
            if name not in self._where or self._where[name].path.name != shard:
                raise IntegrityError(
                    f"{INDEX} in '{self.folder}' says that the tensor '{name}' is in {shard}, and it is not. Index and shards "
                    "are of two checkpoints: fetch them again into an empty folder."
                )

    def __contains__(self, name: str) -> bool:
        return name in self._where

    def names(self) -> Iterable[str]:
        return self._where.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._file(name).tensors[name].shape

    def read(self, name: str, shape: Sequence[int] | None = None, *, rows: slice | None = None) -> NDArray[np.float32]:
        """The tensor as float32, an array of its own.

        `shape` is what the config says that the whole tensor must be; None skips the check.
        `rows` is the part of the first axis to read: a large embedding is read in pieces.
        """
        file = self._file(name)
        found = file.tensors[name].shape
        if shape is not None and tuple(shape) != found:
            raise UsageError(
                f"The tensor '{name}' in '{file.path}' has the shape {list(found)}, and by config.json it must have "
                f"{list(shape)}. Config and weights are of two models: fetch both from the same place."
            )
        values = file.read(name, rows)
        if self._on_read:
            stored = file.tensors[name]
            whole = max(1, math.prod(stored.shape))
            self._read += (stored.end - stored.begin) * values.size // whole
            self._on_read(self._read)
        return values

    def bytes_below(self, prefix: str) -> int:
        """Of the tensors whose names begin so."""
        stored = (file.tensors[name] for name, file in self._where.items() if name.startswith(prefix))
        return sum(tensor.end - tensor.begin for tensor in stored)

    @contextmanager
    def watched(self, on_read: Callable[[int], None]) -> Iterator[None]:
        """Inside, `on_read` gets the bytes read since it began."""
        self._on_read, self._read = on_read, 0
        try:
            yield
        finally:
            self._on_read = None

    def files(self) -> list[Path]:
        """config.json and the weights, in order of name: what the checkpoint's digest covers."""
        return sorted([self.folder / "config.json", *(file.path for file in self._weights)], key=lambda path: path.name)

    def digest(self, on_bytes: Callable[[int], None] | None = None) -> str:
        """sha256 over name, size and content of each file. `on_bytes` gets the bytes done so far."""
        hashed, done = hashlib.sha256(), 0
        for path in self.files():
            try:
                hashed.update(f"{path.name}\0{path.stat().st_size}\0".encode())
                with path.open("rb") as file:
                    while block := file.read(_BLOCK):
                        hashed.update(block)
                        done += len(block)
                        if on_bytes:
                            on_bytes(done)
            except OSError as error:
                raise CompassError(f"'{path}' cannot be read: {error.strerror or error}.") from error
        return hashed.hexdigest()

    def _file(self, name: str) -> SafetensorsFile:
        if name not in self._where:
            raise UsageError(self._missing(name))
        return self._where[name]

    def _missing(self, name: str) -> str:
        files = [file.path.name for file in self._weights]
        searched = files[0] if len(files) == 1 else f"{len(files)} files, {files[0]} to {files[-1]}"
        near = difflib.get_close_matches(name, self._where, n=3)
        nearest = f" The nearest names are {', '.join(near)}." if near else " No name in it is near that."
        return (
            f"The model that config.json of '{self.folder}' describes needs the tensor '{name}', and it is not in the weights "
            f"({searched}).{nearest} The checkpoint is incomplete or of another architecture."
        )
