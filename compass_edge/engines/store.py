"""Where exported models live, and which are there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from compass_edge.engines.engine_record import check_engine_sizes
from compass_edge.engines.file_record import MANIFEST, check_sizes
from compass_edge.engines.manifest import Manifest, read_manifest
from compass_edge.errors import CompassError, UsageError

PARTIAL = ".partial"  # behind the name of a folder whose export is not finished


@dataclass(frozen=True, slots=True)
class Installed:
    """A folder of the store. `fault` says why it is damaged, by a look at sizes only; `manifest` is None if it cannot be read."""

    name: str
    path: Path
    manifest: Manifest | None
    fault: str | None


def models_folder() -> Path:
    if given := os.environ.get("COMPASS_EDGE_MODELS"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "compass-edge" / "models"


def find(name_or_path: str | Path) -> Path:
    """A path that has a manifest, else the model of that name in the store."""
    try:
        return _find(name_or_path)
    except OSError as error:
        raise UsageError(f"'{name_or_path}' cannot be looked up: {error.strerror or error}.") from error


def _find(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if (path / MANIFEST).exists():
        return path
    store = models_folder()
    name = str(name_or_path)
    if Path(name).name == name and name not in ("", ".", "..") and (store / name / MANIFEST).exists():
        return store / name
    if path.is_dir() and (path.is_absolute() or os.sep in name or not (store / name).is_dir()):
        raise UsageError(
            f"'{path}' has no {MANIFEST}, so it is no exported model. If it is a checkpoint, `compass-edge models export {path}` "
            "makes a model of it."
        )
    if (store / name).is_dir() and Path(name).name == name:
        raise UsageError(f"'{store / name}' has no {MANIFEST}, so it is no exported model. Export it again.")
    there = [model.name for model in _folders(store)]
    known = f"it has {', '.join(there)}" if there else "it is empty; `compass-edge models export CHECKPOINT` fills it"
    raise UsageError(f"There is no model '{name}', neither as a folder nor in the store '{store}': {known}.")


def installed() -> list[Installed]:
    return [_look(path) for path in _folders(models_folder())]


def unfinished() -> list[Path]:
    """What exports that were stopped have left behind; the same export goes on from it."""
    store = models_folder()
    return sorted(path for path in store.glob(f"*{PARTIAL}") if path.is_dir()) if store.is_dir() else []


def remove(folder: Path) -> list[Path]:
    """Deletes what the manifest lists, the manifest last, and the folder if nothing is left in it. Returns what is left.

    Links are removed, never followed: nothing outside the folder is touched.
    """
    manifest = read_manifest(folder)
    if folder.is_symlink():
        target = folder.resolve()
        folder.unlink()
        return [target]
    root = folder.resolve()
    try:
        for name in (*manifest.engines, *manifest.files, MANIFEST):
            path = root / name
            if path.parent.resolve().is_relative_to(root) and (path.is_symlink() or path.is_file()):
                path.unlink()
        for place, _, _ in os.walk(root, topdown=False):
            if not any(Path(place).iterdir()):
                Path(place).rmdir()
    except OSError as error:
        raise CompassError(f"'{folder}' could not be removed entirely: {error}.") from error
    return sorted(path for path in folder.rglob("*") if not path.is_dir()) if folder.exists() else []


def _folders(store: Path) -> list[Path]:
    if not store.is_dir():
        return []
    try:
        return sorted(
            path
            for path in store.iterdir()
            if path.is_dir() and path.suffix != PARTIAL and not path.name.startswith(".")
        )
    except OSError as error:
        raise CompassError(f"The store '{store}' cannot be read: {error.strerror or error}.") from error


def _look(path: Path) -> Installed:
    manifest = None
    try:
        manifest = read_manifest(path)
        check_sizes(path, manifest.files)
        check_engine_sizes(path, manifest.engines)
    except CompassError as error:
        return Installed(path.name, path, manifest, str(error))
    return Installed(path.name, path, manifest, None)
