"""A checkpoint of compass-tiny: a folder as any Qwen3-VL has one, in half floats, with RoboMeter's heads and those of the dense labels.

It is what the exports are made of, and what a training can go on with. The progress model has a decoder of its own beside it, and
the same tower.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import UsageError
from training.growth import size_of
from training.model import BINS, PATCH, SIDE, Tiny, config
from training.tokenizer import ids_of

_VISUAL = "model.visual."
_MODEL, _PROGRESS = "model.safetensors", "progress.safetensors"
_EXPERIMENT = f"""\
model:
  use_per_frame_progress_token: true
data:
  use_multi_image: true
loss:
  progress_loss_type: discrete
  progress_discrete_bins: {BINS}
"""


def write_checkpoint(states: dict[str, Any], progress: dict[str, Any], tokenizer: Path, folder: Path) -> None:
    """Two models of one tower; `progress` is all of the second one, which must have it too."""
    own = {name: value for name, value in progress["model"].items() if not name.startswith(_VISUAL)}
    moved = [
        name for name, value in progress["model"].items() if name not in own and (value != states["model"][name]).any()
    ]
    if moved:
        raise UsageError(f"Both models must have one tower, and that of the progress model has another {moved[0]}.")
    folder.mkdir(parents=True, exist_ok=True)
    made = config(size_of(states["model"]), Tokenizer(tokenizer).size, ids_of(Tokenizer(tokenizer)))
    model = Tiny(made)
    model.load_state_dict(states["model"])
    made.architectures = ["Qwen3VLForConditionalGeneration"]
    made.save_pretrained(folder)
    save_file(_halves(model.state_dict()), folder / _MODEL)
    save_file(_halves(own), folder / _PROGRESS)
    (folder / "training").mkdir(exist_ok=True)
    save_file(_halves(states["heads"]), folder / "training" / "heads.safetensors")
    if tokenizer.resolve() != folder.resolve():
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
            shutil.copyfile(tokenizer / name, folder / name)
    (folder / "config.yaml").write_text(_EXPERIMENT)
    # A little more than a square of SIDE has, so that rounding never makes it smaller.
    pixels = {"min_pixels": 4 * (2 * PATCH) ** 2, "max_pixels": SIDE * SIDE + 400}
    described = {
        **pixels,
        "patch_size": PATCH,
        "merge_size": 2,
        "temporal_patch_size": 1,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(described, indent=2) + "\n")


def states_of(path: Path, *, progress: bool = False) -> dict[str, Any]:
    """Of a checkpoint folder, or of what a part of the training has saved: `model` or `visual`, and `heads`."""
    if not path.is_dir():
        found: dict[str, Any] = torch.load(path, weights_only=True)
        return found
    kept = load_file(path / _MODEL) | (load_file(path / _PROGRESS) if progress else {})
    model = {name: value.float() for name, value in kept.items()}
    heads = {name: value.float() for name, value in load_file(path / "training" / "heads.safetensors").items()}
    return {"model": model, "visual": visual_of({"model": model}), "heads": heads}


def visual_of(states: dict[str, Any]) -> dict[str, Tensor]:
    """The tower's part of what was saved."""
    if "visual" in states:
        return dict(states["visual"])
    return {name.removeprefix(_VISUAL): value for name, value in states["model"].items() if name.startswith(_VISUAL)}


def write_progress(checkpoint: Path, folder: Path) -> None:
    """The progress model as a folder of its own, for the exporter."""
    folder.mkdir(parents=True)
    for path in checkpoint.iterdir():
        if path.suffix in (".json", ".jinja", ".yaml"):
            shutil.copyfile(path, folder / path.name)
    states = load_file(checkpoint / _MODEL) | load_file(checkpoint / _PROGRESS)
    save_file(states, folder / _MODEL)
    # Its decoder may have fewer heads than that of O and V.
    described, size = json.loads((folder / "config.json").read_text()), size_of(states)
    described["text_config"] |= {"num_attention_heads": size.heads, "num_key_value_heads": size.kv_heads}
    (folder / "config.json").write_text(json.dumps(described, indent=2) + "\n")


def _halves(states: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.half().contiguous() for name, value in states.items()}
