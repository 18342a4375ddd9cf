"""What TensorRT makes and may need again, in a folder outside the models: engines, timings, compiled kernels. Losing it costs time only."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from compass_edge.errors import CompassError

_DIGEST = 32  # bytes


def cache_folder() -> Path:
    if given := os.environ.get("COMPASS_EDGE_ENGINE_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compass-edge" / "tensorrt"


def read_hashed(path: Path) -> bytes | None:
    """What was cut short or damaged counts as absent."""
    try:
        with path.open("rb") as file:
            digest, content = file.read(_DIGEST), file.read()
    except OSError:
        return None
    return content if hashlib.sha256(content).digest() == digest else None


def write_hashed(path: Path, content: bytes) -> None:
    write_whole(path, hashlib.sha256(content).digest(), content)


def write_whole(path: Path, *pieces: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            for piece in pieces:  # not joined: an engine may be as large as half of the memory
                file.write(piece)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CompassError(
            f"The engine cache '{path.parent}' cannot be written: {error.strerror or error}. Free some space, or name another "
            "folder in COMPASS_EDGE_ENGINE_CACHE."
        ) from error
