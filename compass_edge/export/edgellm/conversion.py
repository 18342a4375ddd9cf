"""A checkpoint becomes what TensorRT Edge-LLM serves: `quantized`, a checkpoint again, and `onnx`, graphs with its plugins.

    OUT/calibration   the frames, if they came out of a data set
    OUT/quantized     what `tensorrt-edgellm-serve` and `-build` take on the device
    OUT/onnx          llm/ and visual/, for the builders of Edge-LLM's C++
    OUT/edgellm.json  what each was made of

A step's folder has its name only once it is whole and was looked at; until then it is `.NAME.partial`, and another run begins it anew.
A step that is there, made of the same, is not made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.engines.edgellm.command_line import export_arguments
from compass_edge.engines.json_file import read_object, read_object_if_there
from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.edgellm import driver
from compass_edge.export.edgellm.calibration import MOST_PIXELS, Calibration
from compass_edge.export.edgellm.environment import PINS, Environment
from compass_edge.export.edgellm.process import Cancelled, run_logged
from compass_edge.export.edgellm.recipe import ALGORITHMS, MIXED, Recipe, check_family, quantized_as

RECORD = "edgellm.json"
QUANTIZED, ONNX, CALIBRATION = "quantized", "onnx", "calibration"
FORMAT = "compass-edge-edgellm/1"
QUANT_CONFIG = "hf_quant_config.json"
_NO_HUB = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONNOUSERSITE": "1",
}

OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Step:
    folder: Path
    algorithm: str  # what hf_quant_config.json says
    made: bool  # by this run; else it was there


class Conversion:
    """Of one checkpoint, into one folder."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        out: Path,
        recipe: Recipe,
        environment: Environment,
        *,
        device: str = "auto",
        on_step: OnStep = lambda *_: None,
        cancelled: Cancelled = lambda: False,
    ) -> None:
        self.family = check_family(checkpoint)
        self.checkpoint, self.out, self.recipe, self.environment = checkpoint, out, recipe, environment
        self._device, self._on_step, self._cancelled = device, on_step, cancelled

    def quantize(self, calibration: Calibration) -> Step:
        key = _key(
            identity_of(self.checkpoint.folder), self.recipe.quantization, self.recipe.head, calibration.digest, PINS
        )
        about = {"recipe": self.recipe.fields, "frames": len(calibration.samples), "calibrated_on": calibration.source}
        job = {
            "do": "quantize",
            "checkpoint": str(self.checkpoint.folder.absolute()),
            "quantization": self.recipe.quantization,
            "head": self.recipe.head,
            "device": self._device,
            "most_pixels": MOST_PIXELS,
            "samples": calibration.fields,
        }
        made = self._step(QUANTIZED, key, about, job, self._check_quantized)
        return Step(self.out / QUANTIZED, quantized_as(read_object(self.out / QUANTIZED / QUANT_CONFIG)), made)

    def export(self) -> Step:
        """Of what was quantized here; else of the checkpoint itself, if somebody has quantized it already."""
        source = self.out / QUANTIZED
        if not source.exists():
            source = self.checkpoint.folder
            if not is_quantized(self.checkpoint):
                raise UsageError(
                    f"To be exported, '{source}' must be quantized, by its {QUANT_CONFIG} or the quantization_config of its "
                    "config.json, and it is not. Leave out --only: it is quantized first."
                )
        key = _key(identity_of(source), self.recipe.mtp, self.recipe.externalize, PINS)
        about = {"recipe": self.recipe.fields, "source": source.name}

        def job(out: Path) -> list[str]:
            mtp, externalize = self.recipe.mtp, self.recipe.externalize
            return export_arguments(str(source.absolute()), str(out), mtp=mtp, externalize=externalize)

        made = self._step(ONNX, key, about, {"do": "export", "arguments": job}, self._check_exported)
        return Step(self.out / ONNX, quantized_as(read_object_if_there(source / QUANT_CONFIG)), made)

    def _step(
        self, name: str, key: str, about: dict[str, Any], job: dict[str, Any], check: Callable[[Path], None]
    ) -> bool:
        final, partial = self.out / name, self.out / f".{name}.partial"
        record = read_object_if_there(self.out / RECORD)
        if final.exists():
            known = record.get("steps", {}).get(name, {})
            if known.get("key") != key:
                raise UsageError(
                    f"'{final}' is there, and was made of something else: another checkpoint, other frames, another precision or "
                    "other versions. Choose another folder, or delete this one."
                )
            check(final)
            return False
        self._on_step(name, 0, 1)
        shutil.rmtree(partial, ignore_errors=True)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            self._run(
                name, {field: value(partial) if callable(value) else value for field, value in job.items()}, partial
            )
            check(partial)
            # The record first: a folder without its line in it would have to be made again by hand.
            steps = {**record.get("steps", {}), name: {"key": key, **about}}
            self._write_record({"format": FORMAT, "family": self.family, "pins": list(PINS), "steps": steps})
            partial.rename(final)
        except OSError as error:
            raise CompassError(
                f"'{final}' could not be written: {error.strerror or error}. Once that is cured, the same command goes on."
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        self._on_step(name, 1, 1)
        return True

    def _run(self, name: str, job: dict[str, Any], partial: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="compass-edge-") as scratch:
            path = Path(scratch, "job.json")
            path.write_text(json.dumps({**job, "out": str(partial.absolute())}), "utf-8")
            log = self.out / f"{name}.log"
            log.unlink(missing_ok=True)
            words = [str(self.environment.python), "-s", driver.__file__, str(path)]
            what = "Edge-LLM's quantizer" if name == QUANTIZED else "Edge-LLM's exporter"
            # Away from the job: what it writes beside itself must not lie in the caller's folder.
            run_logged(words, log, what, environment={**_NO_HUB, "HF_HOME": scratch}, cancelled=self._cancelled)

    def _check_quantized(self, folder: Path) -> None:
        algorithm = quantized_as(_made(folder / QUANT_CONFIG, "quantizer"))
        wanted = ALGORITHMS[self.recipe.quantization]
        if algorithm != wanted and not (self.recipe.head and algorithm == MIXED):
            raise IntegrityError(
                f"Edge-LLM's quantizer was to write a checkpoint in {wanted}, and {algorithm or 'one in no precision'} came, by "
                f"'{folder / QUANT_CONFIG}'. Are the matrices of this model too small for it?"
            )
        Checkpoint(folder)

    def _check_exported(self, folder: Path) -> None:
        for part in ("llm", "visual", *(["mtp_draft"] if self.recipe.mtp else [])):
            _made(folder / part / "config.json", "exporter")
            graph = folder / part / "model.onnx"
            if not graph.is_file() or not graph.stat().st_size:
                raise IntegrityError(f"Edge-LLM's exporter was to write '{graph}', and it is not there, or empty.")

    def _write_record(self, record: dict[str, Any]) -> None:
        partial = self.out / f".{RECORD}.partial"
        partial.write_text(json.dumps(record, indent=1), "utf-8")
        partial.replace(self.out / RECORD)


def is_quantized(checkpoint: Checkpoint) -> bool:
    return (checkpoint.folder / QUANT_CONFIG).exists() or "quantization_config" in checkpoint.config


def identity_of(folder: Path) -> str:
    """Of config.json and the headers of the weights: reading 54 GB again to find that nothing is to be done helps nobody."""
    hashed = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            head = file.read(1 << 20)
            file.seek(max(path.stat().st_size - (1 << 20), 0))
            tail = file.read()
        hashed.update(f"{path.name} {path.stat().st_size} ".encode() + head + tail)
    return hashed.hexdigest()


def _made(path: Path, by: str) -> dict[str, Any]:
    if not path.exists():
        raise IntegrityError(f"Edge-LLM's {by} was to write '{path}', and it is not there.")
    return read_object(path)


def _key(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
