"""A data set: episodes, opened by path, whatever format they are in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from compass_edge.data.bundled import BUNDLED, NAME
from compass_edge.data.episode import Episode
from compass_edge.data.folder import FolderDataset, is_episode
from compass_edge.data.hdf5 import open_hdf5
from compass_edge.data.lerobot import LerobotDataset
from compass_edge.data.libero_mem import LiberoMemDataset
from compass_edge.data.rmbench import RmbenchDataset
from compass_edge.data.robodojo import RobodojoDataset
from compass_edge.data.robodopamine import SUFFIX, RobodopamineDataset
from compass_edge.data.video import SUFFIXES, VideoDataset
from compass_edge.errors import IntegrityError, UsageError


class Dataset(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def format(self) -> str: ...

    def __len__(self) -> int: ...

    def episodes(self) -> Iterator[Episode]:
        """One after the other, read as they are asked for."""


FORMATS = ("folder", "lerobot", "rmbench", "robodojo", "libero_mem", "robodopamine", "video")

_LOOKED_FOR = (
    "episodes of our own (NAME.json with NAME.mp4), meta/info.json (LeRobot v3), language_annotation.json or "
    "data/episode*.hdf5 (RMBench), *.hdf5 with vision/ (RoboDojo) or data/demo_* (LIBERO-Mem), "
    f"*{SUFFIX} (Robo-Dopamine), videos ({', '.join(SUFFIXES)})"
)


def open_dataset(
    path: Path | str,
    format: str | None = None,
    *,
    task: str | None = None,
    camera: str | None = None,
    flip: bool = False,
) -> Dataset:
    """`task`: the instruction of a plain video. `camera`: the data set's own name of one. `flip`: LIBERO-Mem upside down."""
    path = Path(path)
    if str(path) == NAME and not path.exists():
        path = BUNDLED
    if not path.exists():
        raise UsageError(
            f"There is nothing at '{path}': a data set's folder, one of its files, or '{NAME}' (three episodes that come with the "
            "package) is expected."
        )
    if format is not None and format not in FORMATS:
        raise UsageError(f"There is no format '{format}'. There are: {', '.join(FORMATS)}.")
    openers: dict[str, Callable[[], Dataset]] = {
        "folder": lambda: FolderDataset(path),
        "lerobot": lambda: LerobotDataset(path, camera),
        "rmbench": lambda: RmbenchDataset(path, camera),
        "robodojo": lambda: RobodojoDataset(path, camera),
        "libero_mem": lambda: LiberoMemDataset(path, camera, flip=flip),
        "robodopamine": lambda: RobodopamineDataset(path, camera, task),
        "video": lambda: VideoDataset(path, task),
    }
    found = openers[format or detect_format(path)]()
    if not len(found):
        raise UsageError(f"There is no episode of the format {found.format} at '{path}'.")
    return found


def find_episode(dataset: Dataset, id: str) -> Episode:
    """By its id, or by the end of it when only one ends so."""
    ids = []
    ending = []
    for episode in dataset.episodes():
        if episode.id == id:
            return episode
        ids.append(episode.id)
        if episode.id.endswith(f"/{id}"):
            ending.append(episode)
    if len(ending) == 1:
        return ending[0]
    shown = ", ".join(ids[:12]) + (f" and {len(ids) - 12} more" if len(ids) > 12 else "")
    raise UsageError(f"There is no episode '{id}' in {dataset.name}. There are: {shown}.")


def detect_format(path: Path) -> str:
    """By names first, by what is in an HDF5 file where the name says nothing."""
    if path.is_file():
        return _format_of_file(path)
    if (path / "meta" / "info.json").is_file():
        return "lerobot"
    if _any(path, "*.json", is_episode):
        return "folder"
    if _any(path, f"*{SUFFIX}"):
        return "robodopamine"
    if _any(path, "language_annotation.json"):
        return "rmbench"
    first = next(iter(sorted(path.rglob("*.hdf5"))), None)
    if first is not None:
        return _format_of_file(first)
    if _any(path, "*", lambda found: found.suffix.lower() in SUFFIXES):
        return "video"
    raise UsageError(f"'{path}' is no data set that is known here. Looked for: {_LOOKED_FOR}. --format names it.")


def _format_of_file(path: Path) -> str:
    if path.name.endswith(SUFFIX):
        return "robodopamine"
    if path.suffix == ".json":
        return "folder"
    if path.suffix.lower() in SUFFIXES:
        return "folder" if path.with_suffix(".json").is_file() and is_episode(path.with_suffix(".json")) else "video"
    if path.suffix in (".hdf5", ".h5"):
        with open_hdf5(path) as file:
            keys = {str(key) for key in file}
        for key, format in (("vision", "robodojo"), ("observation", "rmbench"), ("data", "libero_mem")):
            if key in keys:
                return format
        raise IntegrityError(
            f"'{path}' should have the key vision (RoboDojo), observation (RMBench) or data (LIBERO-Mem), and has "
            f"{', '.join(sorted(keys)[:12]) or 'nothing'}."
        )
    raise UsageError(f"'{path}' is no data set that is known here. Looked for: {_LOOKED_FOR}. --format names it.")


def _any(root: Path, pattern: str, accepts: Callable[[Path], bool] = Path.is_file) -> bool:
    return any(accepts(path) for path in root.rglob(pattern))
