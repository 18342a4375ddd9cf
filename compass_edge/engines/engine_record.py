"""An engine that TensorRT made of a graph: for which chip and which TensorRT it is good, and from what it was made.

An engine is a program for one kind of chip and one version of one library. Loaded elsewhere it fails late or, worse, does
not fail; so all of this is compared before the file is opened.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from compass_edge.engines.file_record import FileRecord, check_file_name, file_sha256, locate
from compass_edge.errors import IntegrityError

FOLDER = "engines"
PARTS = ("vision", "decoder")
FLAVOURS = ("tensorrt-rtx", "tensorrt")
DTYPES = {"float32": 4, "float16": 2, "int64": 8}
# Of an axis: the least, the usual and the most.
Span: TypeAlias = tuple[int, int, int]
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TARGET = re.compile(r"sm_\d{2,3}")


@dataclass(frozen=True, slots=True)
class Tensor:
    """What goes in or out. An axis is a length or the name of one that the profile bounds."""

    given: bool  # an input
    dtype: str
    shape: tuple[int | str, ...]

    def sized(self, axes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(axis if isinstance(axis, int) else axes[axis] for axis in self.shape)

    def bytes(self, axes: Mapping[str, int]) -> int:
        count = DTYPES[self.dtype]
        for length in self.sized(axes):
            count *= length
        return count


@dataclass(frozen=True, slots=True)
class EngineRecord:
    part: str  # "vision" or "decoder"
    target: str  # "sm_86"
    flavour: str  # "tensorrt-rtx" or "tensorrt"
    version: str  # of that library, to the last number
    precision: str  # as the graph was exported
    profile: Mapping[str, Span]
    tensors: Mapping[str, Tensor]
    bytes: int
    sha256: str
    graph: str  # sha256 of the graph and its weights, as `graph_digest` has it

    @property
    def most(self) -> dict[str, int]:
        return {axis: span[2] for axis, span in self.profile.items()}


def graph_digest(files: Mapping[str, FileRecord], part: str) -> str:
    """Of a part's graph and its weights, by what the manifest says of them."""
    content = {name: files[name].sha256 for name in sorted(files) if name.startswith(f"{part}.onnx")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def rebuild_command(model: str, target: str) -> str:
    return f"compass-edge models build {model} --target {target}"


def check_engine(folder: Path, name: str, record: EngineRecord, files: Mapping[str, FileRecord]) -> None:
    """That it is the file which was built, from the graph that is there. Reads every byte."""
    check_made_from(folder, name, record, files)
    path, cure = _placed(folder, name, record), _cure(folder, record)
    size = path.stat().st_size
    if size != record.bytes:
        raise IntegrityError(f"The engine '{path}' should have {record.bytes} bytes, and it has {size}. {cure}")
    found = file_sha256(path)
    if found != record.sha256:
        raise IntegrityError(
            f"The engine '{path}' should have the sha256 {record.sha256}, and it has {found}: its content has changed. {cure}"
        )


def check_made_from(folder: Path, name: str, record: EngineRecord, files: Mapping[str, FileRecord]) -> None:
    """That the graph it was made from is the one that is there; nothing is read."""
    wanted = graph_digest(files, record.part)
    if record.graph != wanted:
        raise IntegrityError(
            f"The engine '{folder / name}' was made from another {record.part}.onnx (sha256 {record.graph[:12]}...) than the "
            f"model has now ({wanted[:12]}...). {_cure(folder, record)}"
        )


def check_place(folder: Path, name: str, record: EngineRecord, target: str, flavour: str, version: str) -> None:
    """That this chip and this TensorRT are the ones that it was built for."""
    if record.target != target:
        raise IntegrityError(
            f"The engine '{folder / name}' was built for {record.target}, and this GPU is {target}. Build one for it: "
            f"`{rebuild_command(folder.name, target)}`."
        )
    if (record.flavour, record.version) != (flavour, version):
        raise IntegrityError(
            f"The engine '{folder / name}' was built by {record.flavour} {record.version}, and {flavour} {version} is installed "
            f"here; an engine runs on the version that built it. {_cure(folder, record)}"
        )


def check_engine_sizes(folder: Path, engines: Mapping[str, EngineRecord]) -> None:
    for name, record in engines.items():
        size = _placed(folder, name, record).stat().st_size
        if size != record.bytes:
            raise IntegrityError(
                f"The engine '{folder / name}' should have {record.bytes} bytes, and it has {size}. {_cure(folder, record)}"
            )


def verify_engines(
    folder: Path,
    engines: Mapping[str, EngineRecord],
    files: Mapping[str, FileRecord],
    on_bytes: Callable[[int], None] | None = None,
) -> None:
    """All of them, every byte, whatever chip they are for."""
    check_engine_sizes(folder, engines)
    done = 0
    for name, record in engines.items():
        check_engine(folder, name, record, files)
        done += record.bytes
        if on_bytes:
            on_bytes(done)


def _placed(folder: Path, name: str, record: EngineRecord) -> Path:
    try:
        return locate(folder, name)
    except IntegrityError as error:  # its cure is an export; an engine is cheaper to have again
        said = str(error).split(" Export the model")[0]
        raise IntegrityError(f"{said} {_cure(folder, record)}") from error


def _cure(folder: Path, record: EngineRecord) -> str:
    return f"Build it again: `{rebuild_command(folder.name, record.target)}`."


# From and to the manifest


def read_engines(document: Any, folder: Path, expect: Callable[[object, str, str, object], None]) -> dict[str, Any]:
    """The records of a manifest; `expect(holds, key, wanted, value)` refuses with the manifest's own sentence."""
    expect(isinstance(document, dict) and document, "engines", "an object with an engine at least", document)
    made = {}
    for name, value in document.items():
        check_file_name(name, folder)
        key = f"engines.{name}"
        expect(PurePosixPath(name).parts[0] == FOLDER, key, f"a file below {FOLDER}/", name)
        names = {field.name for field in fields(EngineRecord)}
        expect(isinstance(value, dict) and set(value) == names, key, f"an object of {', '.join(sorted(names))}", value)
        expect(value["part"] in PARTS, f"{key}.part", " or ".join(PARTS), value["part"])
        expect(value["flavour"] in FLAVOURS, f"{key}.flavour", " or ".join(FLAVOURS), value["flavour"])
        for text in ("version", "precision"):
            expect(isinstance(value[text], str) and value[text], f"{key}.{text}", "a text", value[text])
        target = value["target"]
        expect(isinstance(target, str) and _TARGET.fullmatch(target), f"{key}.target", "like sm_86", target)
        size = value["bytes"]
        expect(type(size) is int and size > 0, f"{key}.bytes", "a number of bytes", size)
        for hashed in ("sha256", "graph"):
            digest = value[hashed]
            expect(
                isinstance(digest, str) and _SHA256.fullmatch(digest),
                f"{key}.{hashed}",
                "64 hexadecimal digits",
                digest,
            )
        expect(isinstance(value["profile"], dict), f"{key}.profile", "an object", value["profile"])
        profile = {axis: _span(span, f"{key}.profile.{axis}", expect) for axis, span in value["profile"].items()}
        expect(isinstance(value["tensors"], dict), f"{key}.tensors", "an object", value["tensors"])
        tensors = {
            tensor: _tensor(about, f"{key}.tensors.{tensor}", profile, expect)
            for tensor, about in value["tensors"].items()
        }
        made[name] = EngineRecord(**{**value, "profile": profile, "tensors": tensors})
    return made


def _span(value: Any, key: str, expect: Callable[[object, str, str, object], None]) -> Span:
    holds = isinstance(value, list) and len(value) == 3 and all(type(one) is int for one in value)
    expect(holds and 0 < value[0] <= value[1] <= value[2], key, "three rising numbers", value)
    least, usual, most = value
    return least, usual, most


def _tensor(
    value: Any, key: str, profile: Mapping[str, Span], expect: Callable[[object, str, str, object], None]
) -> Tensor:
    expect(isinstance(value, dict) and set(value) == {"given", "dtype", "shape"}, key, "given, dtype and shape", value)
    shape = value["shape"]
    fits = isinstance(shape, list) and all(axis > 0 if type(axis) is int else axis in profile for axis in shape)
    expect(fits and type(value["given"]) is bool, key, "a shape of numbers and axes of the profile", value)
    expect(value["dtype"] in DTYPES, f"{key}.dtype", " or ".join(DTYPES), value["dtype"])
    return Tensor(value["given"], value["dtype"], tuple(shape))
