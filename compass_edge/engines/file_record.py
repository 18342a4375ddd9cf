"""Size and hash of a file in a model's folder, and whether the file is still that one."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from compass_edge.errors import CompassError, IntegrityError

MANIFEST = "manifest.json"
UNFINISHED = f".{MANIFEST}.partial"  # a manifest that is being written
CURE = "Export the model again, or fetch its folder again."
_GRAPHS = (".onnx", ".ort", ".data", ".onnx_data")  # what an engine would load if it came upon it
_PICKLES = (".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_BLOCK = 4 << 20


@dataclass(frozen=True, slots=True)
class FileRecord:
    bytes: int
    sha256: str


def record_files(folder: Path, on_bytes: Callable[[int], None] | None = None) -> dict[str, FileRecord]:
    """Of everything in the folder besides manifest.json. `on_bytes` gets the bytes done so far."""
    records: dict[str, FileRecord] = {}
    done = 0
    for name in sorted(_names(folder)):
        if name in (MANIFEST, UNFINISHED):
            continue
        check_file_name(name, folder)
        size = locate(folder, name).stat().st_size
        records[name] = FileRecord(size, file_sha256(folder / name, done, on_bytes))
        done += size
    return records


def check_file_name(name: str, folder: Path) -> None:
    """A manifest may only name files below its own folder, and none that runs code when it is loaded."""
    path = PurePosixPath(name)
    plain = str(path) == name != "." and not path.is_absolute() and ".." not in path.parts
    if not plain or "\\" in name or "\0" in name or name == MANIFEST:
        raise IntegrityError(
            f"The manifest of '{folder}' names the file {name!r}; only files inside the folder can belong to a model. {CURE}"
        )
    if path.suffix in _PICKLES:
        raise IntegrityError(
            f"The manifest of '{folder}' names '{name}', and such a file can run code when it is loaded. No model has one. {CURE}"
        )


def locate(folder: Path, name: str) -> Path:
    """The file's path, if it is a regular file that really lies in the folder."""
    path = folder / name
    try:
        real = path.resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IntegrityError(f"'{path}' should be there by the manifest, and it is not. {CURE}") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        raise IntegrityError(
            f"'{path}' should be a file by the manifest, and it cannot be reached: {error}. {CURE}"
        ) from error
    if not real.is_relative_to(folder.resolve()):
        raise IntegrityError(
            f"'{path}' should be a file of the model, and it is a link that leads out of the folder, to '{real}'. {CURE}"
        )
    if not regular:
        raise IntegrityError(f"'{path}' should be a regular file by the manifest, and it is something else. {CURE}")
    return path


def check_sizes(folder: Path, records: Mapping[str, FileRecord]) -> None:
    """All that can be told without reading: each file is there with its size, and no other graph or weights beside them."""
    for name, record in records.items():
        size = locate(folder, name).stat().st_size
        if size != record.bytes:
            raise IntegrityError(f"'{folder / name}' should have {record.bytes} bytes, and it has {size}. {CURE}")
    for name in sorted(_names(folder)):
        if name not in records and name.endswith(_GRAPHS):
            raise IntegrityError(
                f"'{folder / name}' is in the folder of a model whose manifest does not name it. Nobody vouches for it: remove it, "
                "or export the model again."
            )


def check_hashes(folder: Path, records: Mapping[str, FileRecord], on_bytes: Callable[[int], None] | None) -> None:
    done = 0
    for name, record in records.items():
        found = file_sha256(folder / name, done, on_bytes)
        if found != record.sha256:
            raise IntegrityError(
                f"'{folder / name}' should have the sha256 {record.sha256}, and it has {found}: its content has changed. {CURE}"
            )
        done += record.bytes


def _names(folder: Path) -> Iterator[str]:
    """Files and links, relative to the folder; links to folders are not followed."""
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*files, *links):
            yield (Path(place) / name).relative_to(folder).as_posix()


def file_sha256(path: Path, before: int = 0, on_bytes: Callable[[int], None] | None = None) -> str:
    """`on_bytes` gets the bytes done so far, those `before` this file included."""
    hashed, done, block = hashlib.sha256(), before, memoryview(bytearray(_BLOCK))
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(block):
                hashed.update(block[:count])
                done += count
                if on_bytes:
                    on_bytes(done)
    except OSError as error:
        raise CompassError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    return hashed.hexdigest()
