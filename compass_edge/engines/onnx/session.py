"""An ONNX Runtime session on a part of a model, or the sentence that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnxruntime

from compass_edge.errors import CompassError, EnvironmentFault, UsageError

Device = Literal["auto", "cpu", "cuda", "tensorrt"]
_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


@dataclass(frozen=True, slots=True)
class Options:
    """How much of the machine a model may use."""

    threads: int | None = None  # None: one a core
    device: Device = "auto"  # CUDA where the wheel has it and a card answers; tensorrt: engines, for a reward model
    context: int = 4096  # tokens that a sequence may grow to: keys and values are allocated for as many
    batch: int = 4  # sequences that are written at once
    prefixes: int = 3  # further sequences that are kept for what the next one shares with them
    vision_bytes: int = 256 << 20  # features of frames
    snapshot_bytes: int = 512 << 20  # states of recurrent layers along a prompt
    forced: bool = True  # tokens that a schema leaves no choice about are appended, not chosen
    packed: bool = (
        True  # weights laid out for speed; else they stay mapped from their file, slow and nearly without memory
    )
    self_test: bool = True  # before the first use, against the manifest

    def __post_init__(self) -> None:
        for name, least in (("context", 64), ("batch", 1), ("prefixes", 0), ("vision_bytes", 0), ("snapshot_bytes", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise UsageError(f"{name} must be a whole number of at least {least}, and {value!r} came.")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads must be at least 1, and {self.threads} came.")
        if self.device not in ("auto", "cpu", "cuda", "tensorrt"):
            raise UsageError(f"device must be auto, cpu, cuda or tensorrt, and '{self.device}' came.")


def open_session(path: Path, options: Options) -> Any:
    providers = _providers(options.device)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.inter_op_num_threads = 1
    if not options.packed:
        settings.add_session_config_entry("session.disable_prepacking", "1")
    if options.threads is not None:
        settings.intra_op_num_threads = options.threads
    try:
        return onnxruntime.InferenceSession(str(path), settings, providers=providers)
    except Exception as error:  # its own exceptions share no base
        text = str(error).partition("\n")[0]
        if "is not a registered function/op" in text or "NOT_IMPLEMENTED" in text or "No Op registered" in text:
            raise EnvironmentFault(
                f"ONNX Runtime {onnxruntime.__version__} lacks an operator that '{path}' needs ({text}). Update it (pip install "
                "--upgrade onnxruntime; the hybrid models need 1.31), or export the model with --dialect standard."
            ) from error
        raise CompassError(f"ONNX Runtime cannot load '{path}': {text}") from error


def _providers(device: Device) -> list[str]:
    if device == "tensorrt":
        raise UsageError(
            "TensorRT's engines are built of reward models (RoboMeter); a language model's graphs run on the device auto, cpu or "
            "cuda, or behind a server (compass_edge.engines.openai)."
        )
    there = onnxruntime.get_available_providers()
    if device == "cpu" or (device == "auto" and _PROVIDERS["cuda"] not in there):
        return [_PROVIDERS["cpu"]]
    if _PROVIDERS["cuda"] not in there:
        raise EnvironmentFault(
            "device 'cuda' needs ONNX Runtime with CUDA, and this one has "
            f"{', '.join(there)}: pip uninstall onnxruntime, then pip install onnxruntime-gpu."
        )
    return [_PROVIDERS["cuda"], _PROVIDERS["cpu"]]
