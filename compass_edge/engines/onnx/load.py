"""From a model's name to a body that has proved itself: every byte hashed, the golden question asked."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from compass_edge.engines.manifest import verify
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.onnx.feature_store import FeatureStore
from compass_edge.engines.onnx.self_test import check_golden
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.store import find
from compass_edge.errors import IntegrityError, UsageError

_PURPOSE = {"vlm": "answers questions (Orienter, Verifier)", "prm": "scores progress"}


def load(
    model: str | Path, kind: Literal["vlm", "prm"], options: Options, features: FeatureStore | None = None
) -> Body:
    folder = find(model)
    manifest = verify(folder)
    if manifest.kind != kind:
        raise UsageError(f"A model that {_PURPOSE[kind]} was expected, and '{folder}' {_PURPOSE[manifest.kind]}.")
    body = Body(folder, manifest, options, features)
    if options.self_test:
        tested = check_golden(body)
        if not tested.passed:
            raise IntegrityError(tested.sentence(folder))
    return body
