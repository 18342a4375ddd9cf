"""A checkpoint: two models with one tower, kept and read back."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers"):
    pytest.importorskip(needed)

from pathlib import Path
from typing import Any

import torch

from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import UsageError
from training.checkpoint import states_of, write_checkpoint, write_progress
from training.dense import DenseHeads
from training.model import Size, Tiny, config
from training.tokenizer import ids_of

TOKENIZER = Path(__file__).parents[2] / "training" / "compass-tiny"
TOWER = "model.visual."


def states(seed: int) -> dict[str, Any]:
    torch.manual_seed(seed)
    tokenizer = Tokenizer(TOKENIZER)
    model = Tiny(config(Size(), tokenizer.size, ids_of(tokenizer)))
    return {"model": model.state_dict(), "heads": DenseHeads(Size().tower, Size().hidden).state_dict()}


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[str, Any]]:
    roles, progress = states(0), states(1)
    tower = {name: value for name, value in roles["model"].items() if name.startswith(TOWER)}
    return roles, {"model": progress["model"] | tower}


def test_each_model_comes_back_and_the_tower_is_one(
    both: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path
) -> None:
    roles, progress = both
    write_checkpoint(roles, progress, TOKENIZER, tmp_path / "kept")
    for wanted, found in (
        (roles, states_of(tmp_path / "kept")),
        (progress, states_of(tmp_path / "kept", progress=True)),
    ):
        assert found["model"].keys() == wanted["model"].keys()
        for name, value in wanted["model"].items():
            assert torch.equal(found["model"][name], value.half().float()), name
    write_progress(tmp_path / "kept", tmp_path / "alone")
    alone, kept = states_of_folder(tmp_path / "alone"), states_of(tmp_path / "kept", progress=True)["model"]
    assert all(torch.equal(alone[name].float(), value) for name, value in kept.items())
    assert (tmp_path / "alone" / "config.yaml").read_text() == (tmp_path / "kept" / "config.yaml").read_text()


def states_of_folder(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def test_another_tower_is_refused(both: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    roles, _ = both
    with pytest.raises(UsageError, match="must have one tower"):
        write_checkpoint(roles, states(1), TOKENIZER, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
