"""A JSON object in a file that came with a model: bounded before it is parsed, refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compass_edge.errors import IntegrityError

CONFIG_BYTES = 16 << 20  # a configuration beside a model; the largest real ones have some kilobytes


def read_bytes(path: Path, limit: int) -> bytes:
    """The whole file, if it is no larger than `limit`."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise IntegrityError(
            f"{path} must be a readable file, and it could not be read: {error.strerror or error}. "
            "Fetch the model's folder again."
        ) from error
    if len(content) > limit:
        raise IntegrityError(
            f"{path} must have at most {limit} bytes, and it has more. Fetch the model's folder again."
        )
    return content


def read_object(path: Path, limit: int = CONFIG_BYTES) -> dict[str, Any]:
    """The JSON object of the file."""
    content = read_bytes(path, limit)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(
            f"{path} must hold JSON, and it does not parse: {error}. Fetch the model's folder again."
        ) from error
    if not isinstance(value, dict):
        raise IntegrityError(
            f"{path} must hold a JSON object, and it holds a {type(value).__name__}. Fetch the model's folder again."
        )
    return value


def read_object_if_there(path: Path, limit: int = CONFIG_BYTES) -> dict[str, Any]:
    """The same, and an empty object where there is no such file."""
    return read_object(path, limit) if path.exists() else {}
