"""The mean of checkpoints."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from training.mean import mean_of


def states(tower: float, decoder: float) -> dict[str, dict[str, object]]:
    return {"model": {"model.visual.a": torch.full((2,), tower), "b": torch.full((3,), decoder)}, "heads": {"c": tower}}


def test_decoders_meet_half_way() -> None:
    found = mean_of([states(1.0, 2.0), states(1.0, 4.0)])
    assert found["model"]["b"].tolist() == [3.0] * 3
    assert found["model"]["model.visual.a"].tolist() == [1.0] * 2
    assert found["heads"] == {"c": 1.0}


def test_towers_that_differ_are_refused() -> None:
    with pytest.raises(SystemExit, match="one tower"):
        mean_of([states(1.0, 2.0), states(1.5, 4.0)])
