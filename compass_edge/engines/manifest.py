"""manifest.json: what an exported model is, and the hash of each of its files. Nothing is loaded that it does not vouch for.

It carries a hash of itself, so that a changed number in it is found as surely as a changed weight. This finds damage;
against somebody who can write to the folder it is no defence.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from compass_edge import __version__
from compass_edge.engines.engine_record import EngineRecord, read_engines
from compass_edge.engines.file_record import (
    CURE,
    MANIFEST,
    UNFINISHED,
    FileRecord,
    check_file_name,
    check_hashes,
    check_sizes,
    locate,
    record_files,
)
from compass_edge.errors import CompassError, IntegrityError, UsageError

__all__ = ["FORMAT", "FileRecord", "Manifest", "check_name", "inspect", "read_manifest", "record_files", "verify",
           "write_manifest"]  # fmt: skip

FORMAT = 1
KINDS = ("vlm", "prm")
DIALECTS = ("ort", "standard")
_OPTIONAL = frozenset({"engines"})  # a manifest may lack it
_LIMIT = 32 << 20  # bytes: goldens are lists of numbers, and nothing else in it is long
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    kind: Literal["vlm", "prm"]
    family: str
    dialect: str
    precision: Mapping[str, str]  # part -> "fp32", "int8", ...
    architecture: Mapping[str, Any]  # numbers that the engine needs
    preprocessing: Mapping[str, Any]  # arguments of compass_edge._native.Preprocessor
    tokenizer: Mapping[str, Any]
    files: Mapping[str, FileRecord]
    source: Mapping[str, str]  # name and sha256 of the checkpoint
    golden: Mapping[str, Any]  # input and output of the self-test
    format: int = FORMAT
    made_with: str = __version__
    engines: Mapping[str, EngineRecord] = field(default_factory=dict)  # what TensorRT made of the graphs, by file

    @property
    def bytes(self) -> int:
        """Of the model as it was exported; engines are made from that and can be made again."""
        return sum(record.bytes for record in self.files.values())

    @property
    def engine_bytes(self) -> int:
        return sum(record.bytes for record in self.engines.values())

    @property
    def digest(self) -> str:
        """Of the files and of what is done with them: two models with one digest give the same answers."""
        content: dict[str, Any] = {"architecture": self.architecture, "preprocessing": self.preprocessing}
        content |= {name: record.sha256 for name, record in self.files.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def run_by(self, runtime: str, engines: Mapping[str, EngineRecord]) -> str:
        """How who runs these engines of it, by part, is called: with another engine it may give other answers."""
        made = ",".join(engines[part].sha256[:8] for part in sorted(engines))
        return f"{self.name}@{self.digest[:16]} ({runtime}, {made})"


def check_name(name: str) -> str:
    """A model's name is a folder's name and an argument of commands: letters, digits, dots, dashes."""
    if not _NAME.fullmatch(name) or name.endswith(".partial"):
        raise UsageError(
            f"A model's name is at most 100 letters, digits, dots, dashes and underscores, begins with a letter or digit and "
            f"does not end in .partial; '{name}' is none."
        )
    return name


def read_manifest(folder: Path) -> Manifest:
    """The manifest alone: its own hash, its format, every type in it. The files are not looked at."""
    path = folder / MANIFEST
    if not path.exists():
        raise IntegrityError(
            f"'{folder}' has no {MANIFEST}, so it is no exported model. `compass-edge models export` makes one from a checkpoint."
        )
    locate(folder, MANIFEST)
    try:
        size = path.stat().st_size
        if size > _LIMIT:
            raise IntegrityError(f"'{path}' has {size} bytes; no manifest has more than {_LIMIT}. {CURE}")
        text = path.read_bytes().decode()
        document = json.loads(text)
        if not isinstance(document, dict):
            raise IntegrityError(f"'{path}' should be a JSON object, and is a {type(document).__name__}. {CURE}")
        _check_format(document, path)
        document.pop("sha256", None)
        unchanged = text == _rendered(document)
    except OSError as error:
        raise CompassError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"'{path}' should be the JSON of a manifest, and is not: {error}. {CURE}") from error
    if not unchanged:
        raise IntegrityError(
            f"'{path}' has changed since it was written: its content does not have the sha256 that stands in it. {CURE}"
        )
    return _manifest(document, folder)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """All at once or not at all; the same manifest gives the same bytes."""
    try:
        document = json.loads(json.dumps(asdict(manifest), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(f"The manifest of '{manifest.name}' holds what JSON cannot: {error}.") from error
    if not document["engines"]:  # as it was before there were any: versions without engines read it too
        del document["engines"]
    _manifest(document, folder)  # what could not be read again is not written
    partial = folder / UNFINISHED
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(_rendered(document))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(folder / MANIFEST)
    except OSError as error:
        raise CompassError(f"'{folder / MANIFEST}' cannot be written: {error.strerror or error}.") from error


def inspect(folder: Path) -> Manifest:
    """The quick check: the manifest, and each file by its size."""
    manifest = read_manifest(folder)
    check_sizes(folder, manifest.files)
    return manifest


def verify(folder: Path, on_bytes: Callable[[int], None] | None = None) -> Manifest:
    """The whole check, every byte. Sizes first, so that what is plainly wrong is said at once."""
    manifest = inspect(folder)
    check_hashes(folder, manifest.files, on_bytes)
    return manifest


def _rendered(document: Mapping[str, Any]) -> str:
    """The one text that a manifest of this content has, its own sha256 included."""
    content = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    sealed = {**document, "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps(sealed, indent=1, sort_keys=True) + "\n"


def _check_format(document: dict[str, Any], path: Path) -> None:
    found = document.get("format")
    if type(found) is not int:
        raise IntegrityError(f"'{path}' should say its format, the number {FORMAT}, and says {found!r}. {CURE}")
    if found != FORMAT:
        age, cure = ("newer", "update compass-edge, or export") if found > FORMAT else ("older", "export")
        raise IntegrityError(
            f"'{path}' has format {found}, {age} than the format {FORMAT} that this version of compass-edge reads: {cure} the "
            "model again with this one."
        )


def _manifest(document: dict[str, Any], folder: Path) -> Manifest:
    path = folder / MANIFEST
    names = {each.name for each in fields(Manifest)}
    if wrong := sorted((names ^ set(document)) - (_OPTIONAL - set(document))):
        what = "lacks" if wrong[0] in names else "has an unknown"
        raise IntegrityError(f"'{path}' {what} '{wrong[0]}'. {CURE}")
    for key in ("name", "kind", "family", "dialect", "made_with"):
        _expect(isinstance(document[key], str) and document[key], path, key, "a text", document[key])
    for key in ("precision", "architecture", "preprocessing", "tokenizer", "files", "source", "golden"):
        _expect(isinstance(document[key], dict), path, key, "an object", document[key])
    for key in ("precision", "source"):
        for name, value in document[key].items():
            _expect(isinstance(value, str), path, f"{key}.{name}", "a text", value)
    _expect(_NAME.fullmatch(document["name"]), path, "name", "letters, digits, dots and dashes", document["name"])
    _expect(document["kind"] in KINDS, path, "kind", " or ".join(KINDS), document["kind"])
    _expect(document["dialect"] in DIALECTS, path, "dialect", " or ".join(DIALECTS), document["dialect"])
    records = {name: _record(path, name, value) for name, value in document["files"].items()}
    for name in records:
        check_file_name(name, folder)
    engines = {}
    if "engines" in document:
        engines = read_engines(
            document["engines"], folder, lambda holds, key, wanted, value: _expect(holds, path, key, wanted, value)
        )
        if twice := sorted(engines.keys() & records.keys()):
            raise IntegrityError(f"'{path}' lists '{twice[0]}' as a file and as an engine. {CURE}")
    return Manifest(**{**document, "files": records, "engines": engines})


def _record(path: Path, name: str, value: Any) -> FileRecord:
    _expect(
        isinstance(value, dict) and set(value) == {"bytes", "sha256"}, path, f"files.{name}", "bytes and sha256", value
    )
    size, digest = value["bytes"], value["sha256"]
    _expect(type(size) is int and size >= 0, path, f"files.{name}.bytes", "a number of bytes", size)
    _expect(
        isinstance(digest, str) and _SHA256.fullmatch(digest), path, f"files.{name}.sha256", "64 hex digits", digest
    )
    return FileRecord(size, digest)


def _expect(holds: object, path: Path, key: str, wanted: str, value: object) -> None:
    if not holds:
        came = repr(value)
        raise IntegrityError(f"'{key}' in '{path}' should be {wanted}, and is {came[:80]}. {CURE}")
