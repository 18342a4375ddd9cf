"""Engines that were built before, kept outside the models by all that an engine depends on. Losing it costs time only."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.engines.engine_record import Span
from compass_edge.errors import CompassError

_DIGEST = 32  # bytes
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


def cache_folder() -> Path:
    if given := os.environ.get("COMPASS_EDGE_ENGINE_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compass-edge" / "tensorrt"


class Cache:
    """A file an engine, with its hash before it: what was cut short or damaged counts as absent."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder()

    def get(self, key: Key) -> bytes | None:
        try:
            with self._engine(key).open("rb") as file:
                digest, engine = file.read(_DIGEST), file.read()
        except OSError:
            return None
        return engine if hashlib.sha256(engine).digest() == digest else None

    def put(self, key: Key, engine: bytes) -> None:
        self._write(self._engine(key), hashlib.sha256(engine).digest(), engine)

    def timings(self, key: Key) -> bytes:
        """How fast TensorRT found its kernels on this chip, empty at first. They are for one version on one chip."""
        try:
            return self._timings(key).read_bytes()
        except OSError:
            return b""

    def put_timings(self, key: Key, timings: bytes) -> None:
        self._write(self._timings(key), timings)

    def _engine(self, key: Key) -> Path:
        return self.folder / f"{key.digest}.engine"

    def _timings(self, key: Key) -> Path:
        return self.folder / f"{key.flavour}-{key.version}-{key.target}.timings"

    def _write(self, path: Path, *pieces: bytes) -> None:
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                for piece in pieces:  # not joined: an engine may be as large as half of the memory
                    file.write(piece)
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise CompassError(
                f"The engine cache '{self.folder}' cannot be written: {error.strerror or error}. Free some space, or name another "
                "folder in COMPASS_EDGE_ENGINE_CACHE."
            ) from error
