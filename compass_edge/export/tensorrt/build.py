"""Engines for one chip into a model's folder, and into its manifest when all of them are there.

A new engine never takes the name of an old one, and the manifest is written last and at once: whenever a build is stopped,
the model is what it was before.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from compass_edge.engines.engine_record import FOLDER, PARTS, EngineRecord, graph_digest
from compass_edge.engines.file_record import check_hashes, check_sizes
from compass_edge.engines.manifest import Manifest, read_manifest, write_manifest
from compass_edge.engines.onnx.self_test import Comparison
from compass_edge.engines.tensorrt.library import Library, open_library
from compass_edge.engines.tensorrt.load import load_engines, target_here, unsound
from compass_edge.engines.tensorrt.target import Target
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError
from compass_edge.export.tensorrt.cache import Cache, Key
from compass_edge.export.tensorrt.network import Network, OnStep
from compass_edge.export.tensorrt.profile import Limits, profiles


@dataclass(frozen=True, slots=True)
class Built:
    engines: Mapping[str, EngineRecord]  # those of this build
    cached: tuple[str, ...]  # parts that had been built before
    tested: Comparison | None  # None: no such chip is here to run them
    manifest: Manifest


def build_engines(
    folder: Path,
    target: Target,
    limits: Limits | None = None,
    *,
    precision: str | None = None,
    cache: Cache | None = None,
    on_step: OnStep | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Built:
    """`precision`: the one that the export is expected to have; engines compute as their graphs say."""
    manifest = read_manifest(folder)
    _check_buildable(folder, manifest, target, precision)
    library = open_library(target.flavour)
    _check_here(target)
    files = {
        name: manifest.files[name] for name in manifest.files if name.startswith(tuple(f"{p}.onnx" for p in PARTS))
    }
    check_sizes(folder, manifest.files)
    check_hashes(folder, files, None)  # an engine of a damaged graph would carry the damage under a sound hash
    wanted, shelf = profiles(manifest, limits or Limits()), cache or Cache()
    made: dict[str, EngineRecord] = {}
    cached = []
    try:
        for part in PARTS:
            job = _Job(folder, manifest, target, library, part, shelf, on_step, cancelled)
            name, record, found = job.run(wanted[part])
            made[name] = record
            cached += [part] if found else []
        before = _unchanged(folder, manifest)
        others = {
            name: record for name, record in before.engines.items() if record.target != target.name or name in made
        }
        listed = replace(before, engines={**others, **made})
        tested = _tested(folder, listed, target)
        write_manifest(folder, listed)
    except BaseException:
        _remove(folder, made.keys() - manifest.engines.keys())
        raise
    _remove(folder, before.engines.keys() - listed.engines.keys())
    return Built(made, tuple(cached), tested, listed)


def _unchanged(folder: Path, manifest: Manifest) -> Manifest:
    """As it is now: a build for another chip may have listed its engines while this one was at work."""
    now = read_manifest(folder)
    if now.files != manifest.files:
        raise CompassError(
            f"'{folder}' was exported again while its engines were built, and they are of the old graphs. Build them again."
        )
    return now


def _check_buildable(folder: Path, manifest: Manifest, target: Target, precision: str | None) -> None:
    source = manifest.source.get("name", "CHECKPOINT")
    if manifest.kind != "prm":
        raise UsageError(
            f"Engines are built for models that score progress, and '{folder}' answers questions. Language models run on "
            "TensorRT Edge-LLM, or behind a server (compass_edge.engines.openai)."
        )
    if manifest.dialect != "standard":
        raise UsageError(
            f"TensorRT takes graphs of the dialect standard, and '{folder}' has those of ONNX Runtime ({manifest.dialect}). Export it "
            f"again: `compass-edge models export {source} --dialect standard --vision fp16 --precision int4-fp16`."
        )
    has = manifest.precision.get("decoder", "")
    if "fp8" in (precision, has) and not target.fp8:
        raise UsageError(
            f"{target.name} ({target.boards}) has no FP8 in its tensor cores. Export '{source}' in int4-fp16, the smallest, or fp16, the "
            "closest, and build that."
        )
    if precision is None:
        return
    if has not in (precision, f"{precision}-fp16"):
        raise UsageError(
            f"An engine computes as its graph was exported: {precision} was asked for, and the decoder of '{folder}' is {has}. Export "
            f"it again: `compass-edge models export {source} --dialect standard --precision {precision}`."
        )


def _check_here(target: Target) -> None:
    """TensorRT of JetPack measures on the chip that it builds for."""
    if target.ahead:
        return
    here = target_here()
    if here != target.name:
        found = f"the GPU here is {here}" if here else "there is no GPU here"
        raise EnvironmentFault(
            f"Engines for {target.name} ({target.boards}) are built on the device itself, and {found}. Copy the model's folder there and "
            "run the same command."
        )


@dataclass(frozen=True, slots=True)
class _Job:
    """One part of a model."""

    folder: Path
    manifest: Manifest
    target: Target
    library: Library
    part: str
    cache: Cache
    on_step: OnStep | None
    cancelled: Callable[[], bool]

    def run(self, profile: Mapping[str, tuple[int, int, int]]) -> tuple[str, EngineRecord, bool]:
        key = Key(
            graph_digest(self.manifest.files, self.part),
            self.target.name,
            self.library.flavour,
            self.library.version,
            self.manifest.precision[self.part],
            profile,
        )
        if self.cancelled():
            raise KeyboardInterrupt
        network = Network(self.library, self.folder / f"{self.part}.onnx")
        engine = self.cache.get(key)
        found = engine is not None
        if engine is None:
            tell = self.on_step
            engine, timings = network.build(
                self.target,
                self.part,
                profile,
                on_step=None if tell is None else lambda phase, done, of: tell(f"{self.part}: {phase}", done, of),
                cancelled=self.cancelled,
                timings=self.cache.timings(key),
            )
            self.cache.put(key, engine)
            if timings:
                self.cache.put_timings(key, timings)
        digest = hashlib.sha256(engine).hexdigest()
        name = f"{FOLDER}/{self.target.name}/{self.part}-{digest[:12]}.engine"
        record = EngineRecord(
            part=self.part,
            target=key.target,
            flavour=key.flavour,
            version=key.version,
            precision=key.precision,
            profile=dict(profile),
            tensors=network.tensors(self.part),
            bytes=len(engine),
            sha256=digest,
            graph=key.graph,
        )
        _write(self.folder / name, engine)
        return name, record, found


def _write(path: Path, engine: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(engine)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise CompassError(f"The engine '{path}' cannot be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def _tested(folder: Path, manifest: Manifest, target: Target) -> Comparison | None:
    """The question of the manifest, put to the new engines where they can run, before the manifest lists them."""
    if target_here() != target.name:
        return None
    body, tested = load_engines(folder, manifest, target.name)
    body.close()
    if not tested.passed:
        raise IntegrityError(unsound(folder, manifest, target.name, tested))
    return tested


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        path = folder / name
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            path.parent.rmdir()  # left alone while anything is in it
            path.parent.parent.rmdir()
