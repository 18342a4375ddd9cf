"""Small models that were really exported, each once for all tests that ask for it, and pictures to show them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_samples import write_sample
from numpy.typing import NDArray

from compass_edge.engines.manifest import Manifest, read_manifest
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe
from compass_edge.models import Image, Question
from compass_edge.roles.schema import choice, flag, record, whole, words

OPTIONS = Options(context=2048, batch=3, prefixes=2, self_test=False)
SCHEMA = record(colour=choice("red", "green"), why=words(24), sure=whole(0, 9), seen=flag())
GRAPHS = [
    ("qwen3-vl", "ort"),
    ("qwen3.5", "ort"),
    ("qwen2.5-vl", "ort"),
    ("qwen3-vl", "standard"),
    ("qwen3.5", "standard"),
]
EACH = pytest.mark.parametrize(("kind", "dialect"), GRAPHS)

Open = Callable[..., OnnxVlm]


class Samples:
    """Below one folder: checkpoints by kind, models by recipe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def checkpoint(self, kind: str, seed: int = 0) -> Path:
        folder = self._folder / f"{kind}-{seed}"
        return folder if folder.exists() else write_sample(kind, folder, seed=seed)

    def model(self, kind: str, *, seed: int = 0, **recipe: Any) -> Path:
        """In floats unless the recipe says otherwise. Not to be changed: others use it too."""
        chosen = {"decoder": "fp32", "embedding": "fp32", **recipe}
        name = "-".join([kind, str(seed), *map(str, chosen.values())])
        out = self._folder / "models" / name
        if not out.exists():
            out.parent.mkdir(exist_ok=True)
            export_model(self.checkpoint(kind, seed), out, Recipe(**chosen), name=name)
        return out

    def vlm(self, kind: str = "qwen3-vl", dialect: str = "ort", **options: Any) -> OnnxVlm:
        return OnnxVlm(self.model(kind, dialect=dialect), replace(OPTIONS, **options))

    def manifest(self, kind: str, **recipe: Any) -> Manifest:
        return read_manifest(self.model(kind, **recipe))

    def copy(self, target: Path, kind: str, **recipe: Any) -> Path:
        """One that may be changed."""
        return Path(shutil.copytree(self.model(kind, **recipe), target))


def distance(values: Any, reference: Any) -> float:
    """Root mean square of the difference, in spreads of the reference; scores between 0 and 1 count as they are."""
    found, expected = np.asarray(values, np.float64), np.asarray(reference, np.float64)
    spread = expected.std() if expected.size > 8 else 1.0
    return float(np.sqrt(np.mean((found - expected) ** 2)) / spread)


def picture(number: int, size: tuple[int, int] = (96, 64)) -> Image:
    """Noise, `size` wide and high: 96 x 64 are 3 x 2 tokens where a token has 32 pixels a side and small pictures may stay."""
    return Image(f"picture {number} {size}", noise(number, size))


def noise(number: int, size: tuple[int, int] = (96, 64)) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), np.uint8)


def question(number: int = 0, *, schema: Any = SCHEMA, most: int = 200, pictures: int = 2) -> Question:
    """Questions begin alike; the number stands before the last picture."""
    shown: list[str | Image] = ["Look at these pictures of a robot. ", *(picture(at) for at in range(pictures - 1))]
    return Question((*shown, f"Question {number}. ", picture(90 + number), " What colour is it?"), schema, most)


def ask(model: OnnxVlm, *questions: Question, cancelled: Callable[[], bool] = lambda: False) -> list[str]:
    return model.ask(questions, lambda index, piece: None, cancelled)
