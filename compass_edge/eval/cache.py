"""The cache of results: one file for each method and episode, named by the hash of all that its content depends on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from compass_edge.data.episode import Episode
from compass_edge.eval.result import LoopTrace, Result, Ruling

# To be raised with every change of the code that changes a result: what was cached before is then made again.
VERSION = 1
# A file is written in moments: a part that is older was left by a process that was ended meanwhile.
ABANDONED_S = 3600
Warn = Callable[[str], None]
_BROKEN = (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile, zlib.error)


def key_of(method: Mapping[str, Any], episode: Episode) -> str:
    """Steps belong to it: what a ruling is held against, and what an oracle knows."""
    path = episode.tracks.get("path")
    shown = {
        "id": episode.id,
        "film": episode.film.key,
        "frames": episode.frames,
        "fps": episode.fps,
        "instruction": episode.instruction,
        "steps": None if episode.steps is None else [asdict(step) for step in episode.steps],
        "path": None if path is None else hashlib.blake2b(np.asarray(path, np.float64).tobytes()).hexdigest(),
    }
    text = json.dumps([VERSION, dict(method), shown], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Cache:
    """Any number of processes may use one folder: a file is whole when it appears. A broken one is made again."""

    def __init__(self, folder: str | os.PathLike[str], warn: Warn = lambda line: None) -> None:
        self.folder, self._warn = Path(folder), warn
        self.folder.mkdir(parents=True, exist_ok=True)
        for part in self.folder.glob("*.part"):
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > ABANDONED_S:
                    part.unlink()

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"

    def load(self, key: str) -> tuple[Result, ...] | None:
        path = self.path(key)
        if not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                meta = json.loads(str(arrays["meta"]))
                if meta["key"] != key:
                    raise ValueError("it holds the results of something else")
                return tuple(_read(entry, index, arrays) for index, entry in enumerate(meta["results"]))
        except _BROKEN as error:
            self._warn(f"The cached result '{path}' cannot be read and is made again: {error}.")
            return None

    def store(self, key: str, results: tuple[Result, ...]) -> None:
        """A disk that is full costs the cache, not the results."""
        arrays: dict[str, Any] = {}
        entries = [_entry(result, index, arrays) for index, result in enumerate(results)]
        arrays["meta"] = np.array(json.dumps({"key": key, "results": entries}))
        part = self.folder / f"{key}.{os.getpid()}.part"
        try:
            with part.open("wb") as file:
                np.savez_compressed(file, **arrays)
            part.replace(self.path(key))
        except OSError as error:
            self._warn(f"The result '{self.path(key)}' could not be kept: {error}.")
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def _entry(result: Result, index: int, arrays: dict[str, Any]) -> dict[str, Any]:
    arrays[f"values{index}"] = result.values
    entry: dict[str, Any] = {"episode": result.episode, "method": result.method, "trace": None}
    if result.trace is not None:
        arrays[f"position{index}"], arrays[f"local{index}"] = result.trace.position, result.trace.local
        fields = asdict(result.trace)
        entry["trace"] = {name: value for name, value in fields.items() if name not in ("position", "local")}
    return entry


def _read(entry: dict[str, Any], index: int, arrays: Mapping[str, Any]) -> Result:
    trace = None
    if entry["trace"] is not None:
        fields = entry["trace"]
        rulings = tuple(Ruling(**ruling) for ruling in fields["rulings"])
        kept = {**fields, "plan": tuple(fields["plan"]), "rulings": rulings}
        trace = LoopTrace(position=arrays[f"position{index}"], local=arrays[f"local{index}"], **kept)
    return Result(entry["episode"], entry["method"], arrays[f"values{index}"], trace)
