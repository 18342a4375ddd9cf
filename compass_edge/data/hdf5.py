"""HDF5 files, opened and looked into with errors that name the file, the key and what was expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from compass_edge.errors import EnvironmentFault, IntegrityError

# What h5py raises for a file that is cut off or damaged, depending on where.
DAMAGE = (OSError, RuntimeError, ValueError, KeyError, TypeError)


def h5py_module() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise EnvironmentFault("HDF5 files need h5py: `pip install 'compass-edge[data]'`.") from error
    return h5py


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    h5py = h5py_module()
    try:
        # Without a lock: data sets lie on read-only and network disks, and nobody writes to them.
        file = h5py.File(path, "r", locking=False)
    except DAMAGE as error:
        why = "it is not there" if not path.is_file() else f"it cannot be read: {_first_line(error)}"
        raise IntegrityError(
            f"'{path}' should be an HDF5 file, and {why}. If it was copied or downloaded, fetch it again."
        ) from error
    with file:
        yield file


def dataset_at(file: Any, key: str, path: Path, expected: str = "a data set") -> Any:
    found = _look_up(file, key, path, expected)
    if not isinstance(found, h5py_module().Dataset):
        raise IntegrityError(f"'{path}': the key '{key}' should be {expected}, and it is a group.")
    return found


def group_at(file: Any, key: str, path: Path) -> Any:
    found = _look_up(file, key, path, "a group")
    if not isinstance(found, h5py_module().Group):
        raise IntegrityError(f"'{path}': the key '{key}' should be a group, and it is a data set.")
    return found


def text_at(file: Any, key: str, path: Path) -> str:
    value = scalar_at(file, key, path, "a text")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, str):
        raise IntegrityError(f"'{path}': the key '{key}' should be a text, and {value!r} came.")
    return value


def json_at(file: Any, key: str, path: Path) -> Any:
    text = text_at(file, key, path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"'{path}': the key '{key}' should hold JSON, and it cannot be read: {error}.") from error


def scalar_at(file: Any, key: str, path: Path, expected: str) -> Any:
    try:
        value = dataset_at(file, key, path, expected)[()]
    except DAMAGE as error:
        raise damaged(path, key, error) from error
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise IntegrityError(f"'{path}': the key '{key}' should be {expected}, and an array of {value.shape} came.")
        value = value.reshape(-1)[0]
    return value.item() if isinstance(value, np.generic) else value


def damaged(path: Path, key: str, error: Exception) -> IntegrityError:
    return IntegrityError(
        f"'{path}': the key '{key}' cannot be read ({_first_line(error)}): the file is cut off or damaged. Fetch it again."
    )


def _look_up(file: Any, key: str, path: Path, expected: str) -> Any:
    try:
        if key in file:
            return file[key]
        there = ", ".join(sorted(str(name) for name in file)[:12]) or "nothing"
    except DAMAGE as error:
        raise damaged(path, key, error) from error
    raise IntegrityError(f"'{path}': the key '{key}' is missing ({expected} was expected); at its top is {there}.")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
