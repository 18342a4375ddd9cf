"""Engines for tests: real ones where TensorRT-RTX is installed, and records of engines that are only bytes."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from compass_edge.engines.engine_record import FOLDER, PARTS, EngineRecord, Tensor, graph_digest
from compass_edge.engines.manifest import Manifest, read_manifest, write_manifest
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.tensorrt import load as loading
from compass_edge.engines.tensorrt.body import TensorRtBody
from compass_edge.engines.tensorrt.stand_in import StandIn
from compass_edge.export.tensorrt.profile import Limits, profiles

VERSION = "1.7.1.116"
OPTIONS = Options(threads=1, batch=2, self_test=False, vision_bytes=0)  # as few slots as there may be
LIMITS = Limits(frames=4, batch=2, width=128, height=96, words=480)
FP16 = {"dialect": "standard", "vision": "fp16", "decoder": "fp16"}
INT4 = {"dialect": "standard", "vision": "fp16", "decoder": "int4-fp16"}
FP8 = {"dialect": "standard", "vision": "fp16", "decoder": "fp8"}
FP32 = {"dialect": "standard", "vision": "fp32", "decoder": "fp32"}
# A newcomer's machine may lack it; in CI it must be there.
REAL = pytest.mark.skipif(
    importlib.util.find_spec("tensorrt_rtx_bindings") is None and "CI" not in os.environ,
    reason="TensorRT-RTX is not installed: pip install 'compass-edge[tensorrt-rtx]'",
)
_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(int64)": "int64"}


def tensors_of(graph: Path) -> dict[str, Tensor]:
    """As ONNX Runtime sees them."""
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    found = [(value, True) for value in session.get_inputs()] + [(value, False) for value in session.get_outputs()]
    return {value.name: Tensor(given, _TYPES[value.type], tuple(value.shape)) for value, given in found}


def listed(folder: Path, target: str = "sm_86", limits: Limits = LIMITS, **changes: Any) -> Manifest:
    """The model with an engine a part that is only bytes, as if it had been built."""
    manifest = read_manifest(folder)
    made = dict(manifest.engines)
    for part in PARTS:
        content = f"engine of {folder.name} {part} {target}".encode() * 50
        name = f"{FOLDER}/{target}/{part}.engine"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        record = EngineRecord(
            part=part,
            target=target,
            flavour="tensorrt-rtx",
            version=VERSION,
            precision=manifest.precision[part],
            profile=profiles(manifest, limits)[part],
            tensors=tensors_of(folder / f"{part}.onnx"),
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            graph=graph_digest(manifest.files, part),
        )
        made[name] = replace(record, **changes)
    manifest = replace(manifest, engines=made)
    write_manifest(folder, manifest)
    return manifest


def stood_in(folder: Path, options: Options = OPTIONS) -> tuple[TensorRtBody, StandIn]:
    """A body on ONNX Runtime in the place of a GPU, which has proved itself."""
    manifest = read_manifest(folder)
    chosen = loading.choose(folder, manifest, "sm_86", "tensorrt-rtx", VERSION)
    device = StandIn(folder, {part: record for part, (_, record) in chosen.items()}, options)
    body, tested = loading.tested_body(folder, manifest, chosen, device, options)
    assert tested.passed
    return body, device
