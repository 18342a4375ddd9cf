"""From a model's name to a body on this machine's GPU that has proved itself: every byte hashed, the golden question asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compass_edge.engines.engine_record import PARTS, EngineRecord, check_engine, check_place, rebuild_command
from compass_edge.engines.file_record import check_hashes
from compass_edge.engines.manifest import Manifest, inspect
from compass_edge.engines.onnx.self_test import Comparison, check_golden
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.store import find
from compass_edge.engines.tensorrt.body import TensorRtBody
from compass_edge.engines.tensorrt.cuda import Cuda
from compass_edge.engines.tensorrt.device import Device
from compass_edge.engines.tensorrt.gpu import Gpu
from compass_edge.engines.tensorrt.library import open_library
from compass_edge.engines.tensorrt.target import target_of
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError

Chosen = Mapping[str, tuple[str, EngineRecord]]  # part: file and record


def load(model: str | Path, options: Options | None = None) -> TensorRtBody:
    folder = find(model)
    manifest = inspect(folder)
    if manifest.kind != "prm":
        raise UsageError(
            f"Engines run models that score progress, and '{folder}' answers questions. Open it with "
            "compass_edge.engines.onnx.OnnxVlm, or serve it and use compass_edge.engines.openai."
        )
    target = Cuda().target()
    body, tested = load_engines(folder, manifest, target, options)
    if not tested.passed:
        body.close()
        raise IntegrityError(unsound(folder, manifest, target, tested))
    return body


def load_engines(
    folder: Path, manifest: Manifest, target: str, options: Options | None = None
) -> tuple[TensorRtBody, Comparison]:
    """The body and how its answer compares. The test is not optional: there are machines that compute garbage in silence."""
    library = open_library(target_of(target).flavour)
    chosen = choose(folder, manifest, target, library.flavour, library.version)
    return tested_body(folder, manifest, chosen, Gpu(folder, chosen, library, Cuda()), options)


def tested_body(
    folder: Path, manifest: Manifest, chosen: Chosen, device: Device, options: Options | None
) -> tuple[TensorRtBody, Comparison]:
    """Hashes what is loaded beside the engines; the graphs that these were made from are not."""
    others = {
        name: record
        for name, record in manifest.files.items()
        if not name.startswith(tuple(f"{part}.onnx" for part in PARTS))
    }
    check_hashes(folder, others, None)
    records = {part: record for part, (_, record) in chosen.items()}
    body = TensorRtBody(folder, manifest, records, device, options)
    return body, check_golden(body)


def choose(folder: Path, manifest: Manifest, target: str, flavour: str, version: str) -> Chosen:
    """The engine of each part that is for this chip and this TensorRT, every byte of it as it was built."""
    chosen = {}
    for part in PARTS:
        there = {name: record for name, record in manifest.engines.items() if record.part == part}
        if not there:
            raise UsageError(
                f"'{folder}' has no engine of its {part}. Build them: `{rebuild_command(folder.name, target)}`, on any machine with "
                "TensorRT-RTX, or on the Jetson itself."
            )
        # Of those that do not fit, the nearest is the one to speak of.
        name = min(there, key=lambda one: (there[one].target != target, there[one].version != version))
        check_place(folder, name, there[name], target, flavour, version)
        check_engine(folder, name, there[name], manifest.files)
        chosen[part] = (name, there[name])
    return chosen


def target_here() -> str | None:
    """The chip of this machine's GPU; None where there is none, or no cuda-python to ask it with."""
    try:
        return Cuda().target()
    except (EnvironmentFault, CompassError):
        return None


def unsound(folder: Path, manifest: Manifest, target: str, tested: Comparison) -> str:
    known = ""
    if target == "sm_110":
        known = (
            " Thor with JetPack 7.1 is known to do so, silently, with a batch of 1: update to JetPack 7.2, or build with --batch 2, or "
            'set __LUNOWUD="-peep:fc_h_fusion=off" before building and running.'
        )
    return (
        f"The engines of '{manifest.name}' for {target} are the ones that were built, and they give another answer to the question of "
        f"its manifest: {tested.worst:.3g} off, and {tested.tolerance:.3g} is tolerated. Do not trust them.{known} Then build them "
        f"again (`{rebuild_command(folder.name, target)}`); until that passes, run the model on ONNX Runtime."
    )
