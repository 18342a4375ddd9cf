"""Engines that were built before, kept outside the models by all that an engine depends on. Losing it costs time only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.engines.engine_record import Span
from compass_edge.engines.tensorrt.kept import cache_folder, read_hashed, write_hashed, write_whole

EDITION = 1  # raise it when the same key would build something else


@dataclass(frozen=True, slots=True)
class Key:
    graph: str
    target: str
    flavour: str
    version: str
    precision: str
    profile: Mapping[str, Span]

    @property
    def digest(self) -> str:
        content: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name != "profile"}
        content |= {"profile": {axis: list(span) for axis, span in self.profile.items()}, "edition": EDITION}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Cache:
    """A file an engine, with its hash before it: what was cut short or damaged counts as absent."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder()

    def get(self, key: Key) -> bytes | None:
        return read_hashed(self._engine(key))

    def put(self, key: Key, engine: bytes) -> None:
        write_hashed(self._engine(key), engine)

    def timings(self, key: Key) -> bytes:
        """How fast TensorRT found its kernels on this chip, empty at first. They are for one version on one chip."""
        try:
            return self._timings(key).read_bytes()
        except OSError:
            return b""

    def put_timings(self, key: Key, timings: bytes) -> None:
        write_whole(self._timings(key), timings)

    def _engine(self, key: Key) -> Path:
        return self.folder / f"{key.digest}.engine"

    def _timings(self, key: Key) -> Path:
        return self.folder / f"{key.flavour}-{key.version}-{key.target}.timings"
