"""The golden of a manifest: a question whose answer was written down at export, asked again wherever the model is loaded.

Hashes prove that the files are the same; this proves that what runs them computes the same. It covers the whole way:
tokenizer and template, preprocessing, tower, decoder, head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Architecture
from compass_edge.engines.file_record import CURE
from compass_edge.engines.manifest import Manifest, verify
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.scoring_body import ScoringBody
from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.models import Image

_TEXT = "What does the robot do? Reply in one line: 'It moves the red block.'"
SAMPLES = 64  # numbers of each output that are kept
GOLDEN_PICTURE = (128, 96)  # wide and high
# Root mean square of the differences, in spreads of the output. An answer that has nothing to do with the right one is 1.4
# off. Rounding to eight or four bits falls on the other side here and there on another processor.
_TOLERANCE = {"fp32": 1e-3, "fp16": 0.03}
_QUANTIZED = 0.2
_PACKED = 6 << 30  # bytes of a model that is run as a robot runs it when it is made
_WORDS = 1024  # tokens at most, besides those of the pictures


@dataclass(frozen=True, slots=True)
class Comparison:
    worst: float
    tolerance: float

    @property
    def passed(self) -> bool:
        return self.worst <= self.tolerance

    def sentence(self, folder: Path) -> str:
        return (
            f"'{folder}' has the right files and gives another answer to the question of its manifest: {self.worst:.3g} off, and "
            f"{self.tolerance:.3g} is tolerated. Its runtime is broken or of another kind: reinstall onnxruntime, or export again."
        )


def record_golden(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """For the manifest that is being written. A large model is run from its mapped files, so that making one takes less
    memory than running it; the kernels are others then, and rounding falls otherwise more often.
    """
    packed = manifest.bytes <= _PACKED
    body = Body(folder, manifest, replace(_options(manifest), packed=packed))
    ids, values = _answer(body)
    if wrong := [name for name, found in values.items() if not np.isfinite(found).all()]:
        kept = ", ".join(f"{part} {precision}" for part, precision in manifest.precision.items())
        raise UsageError(
            f"The model that was made gives {' and '.join(wrong)} that are no numbers: at this precision ({kept}) it overflows. "
            "Choose one without fp16."
        )
    rounded = {name: [float(f"{value:.6g}") for value in found] for name, found in values.items()}
    return {"ids": ids, "values": rounded, "tolerance": _tolerances(manifest.precision, values, packed)}


def self_test(folder: Path, threads: int | None = None) -> Comparison:
    """Of a model's folder, whose files are hashed first."""
    manifest = verify(folder)
    return check_golden(Body(folder, manifest, _options(manifest, threads)))


def _options(manifest: Manifest, threads: int | None = None) -> Options:
    """As little as the question needs: small pictures are enlarged to `min_pixels`."""
    settings = manifest.preprocessing
    side = int(settings.get("patch", 16)) * int(settings.get("merge", 2))
    pictures = 2 * (int(settings.get("min_pixels", 0)) // side**2 + 64)
    context = min(_WORDS + pictures, Architecture.from_dict(manifest.architecture).decoder.positions)
    return Options(threads=threads, context=context, batch=1, prefixes=0, self_test=False)


def check_golden(body: ScoringBody) -> Comparison:
    golden = body.manifest.golden
    kept, tolerances = (
        dict(golden[key]) if isinstance(golden.get(key), dict) else {} for key in ("values", "tolerance")
    )
    try:
        ids, values = _answer(body)
    except CompassError:
        raise
    except Exception as error:  # those of ONNX Runtime share no base
        said = str(error).partition("\n")[0]
        raise IntegrityError(
            f"'{body.manifest.name}' has the files of its manifest, and they do not work together ({type(error).__name__}: "
            f"{said}). {CURE}"
        ) from error
    if ids != golden.get("ids") or not values.keys() == kept.keys() == tolerances.keys():
        return Comparison(float("inf"), 0.0)
    compared = [Comparison(_difference(values[name], kept[name]), tolerances[name]) for name in values]
    return max(compared, key=lambda one: one.worst / one.tolerance)


def _answer(body: ScoringBody) -> tuple[list[int], Mapping[str, NDArray[np.float64]]]:
    """Pictures and a sentence. A reward model's heads are read all along, not only where they mean something: two scores
    between 0 and 1 would tell little. A language model also reads one token more.
    """
    pictures = [Image(f"golden {number}", _drawn(number)) for number in range(2)]
    with body.lock:
        if body.manifest.kind == "prm":
            mark = body.tokens.progress
            prompt = body.prompt([_TEXT, pictures[0], mark, pictures[1], mark], {}, generation=False)
            outputs = body.read_each([prompt], [np.linspace(0, len(prompt) - 1, SAMPLES).astype(int).tolist()])[0]
            values = {name: outputs[name].copy() for name in ("progress", "success")}
        else:
            assert isinstance(body, Body)  # nothing else runs a language model's graphs
            prompt = body.prompt([pictures[0], _TEXT], {}, generation=True)
            row, outputs = body.read(prompt, [len(prompt) - 1])
            first = _sampled(outputs["logits"])
            further = body.advance(row, [[int(prompt.ids[-1])]], [prompt.next_position])["logits"]
            values = {"logits": first, "next_logits": _sampled(further)}
        features = body.encoded(pictures[0])
        body.forget()
    found = {"features": _sampled(features), **values}
    return prompt.ids.tolist(), {name: np.asarray(value, np.float64).reshape(-1) for name, value in found.items()}


def _sampled(values: NDArray[Any]) -> NDArray[Any]:
    flat = values.reshape(-1)
    return np.array(flat[:: max(1, flat.size // SAMPLES)][:SAMPLES])


def _drawn(number: int) -> NDArray[np.uint8]:
    """A picture that needs no file: coloured waves."""
    high, wide = np.mgrid[0 : GOLDEN_PICTURE[1], 0 : GOLDEN_PICTURE[0]]
    waves = [127.5 + 127.5 * np.sin((high * (2 + c) + wide * (5 - c) + 40 * number) / 23.0) for c in range(3)]
    drawn: NDArray[np.uint8] = np.stack(waves, axis=-1).astype(np.uint8)
    return drawn


def _difference(values: NDArray[np.float64], kept: Any) -> float:
    expected = np.asarray(kept, np.float64)
    if expected.shape != values.shape or not np.isfinite(values).all():
        return float("inf")
    return float(np.sqrt(np.mean((values - expected) ** 2)) / max(float(expected.std()), 1e-6))


def _tolerances(precision: Mapping[str, str], names: Iterable[str], packed: bool) -> dict[str, float]:
    """The tower's features by its own precision, all that is behind it by the worst."""
    each = {part: _TOLERANCE.get(precision[part], _QUANTIZED) for part in ("vision", "decoder")}
    worst = max(each.values())
    return {name: (each["vision"] if name == "features" else worst) * (1 if packed else 2) for name in names}
