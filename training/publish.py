"""Publishes a trained model: a checkpoint as any Qwen3-VL has one, and the two exports of it that the package carries.

python -m training.publish ROLES.pt TOKENIZER CHECKPOINT --package compass_edge/tiny
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe
from training.model import BINS, PATCH, SIDE, Size, Tiny, config
from training.tokenizer import ids_of

_EXPERIMENT = f"""\
model:
  use_per_frame_progress_token: true
data:
  use_multi_image: true
loss:
  progress_loss_type: discrete
  progress_discrete_bins: {BINS}
"""
KINDS = {"vlm": "vlm", "prm": "robometer"}


def write_checkpoint(state: dict[str, torch.Tensor], tokenizer: Path, folder: Path) -> None:
    """One folder for both kinds: a language model with RoboMeter's heads beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    made = config(Size(), Tokenizer(tokenizer).size, ids_of(Tokenizer(tokenizer)))
    model = Tiny(made)
    model.load_state_dict(state)
    made.architectures = ["Qwen3VLForConditionalGeneration"]
    made.save_pretrained(folder)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, folder / "model.safetensors")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(tokenizer / name, folder / name)
    (folder / "config.yaml").write_text(_EXPERIMENT)
    # A little more than a square of SIDE has, so that rounding never makes it smaller.
    pixels = {"min_pixels": 4 * (2 * PATCH) ** 2, "max_pixels": SIDE * SIDE + 400}
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**pixels, "patch_size": PATCH, "merge_size": 2, "temporal_patch_size": 1,
                    "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, indent=2)
    )  # fmt: skip


def export_both(checkpoint: Path, package: Path, decoder: str = "int8", vision: str = "int8") -> None:
    for part, kind in KINDS.items():
        out = package / part
        if out.exists():
            shutil.rmtree(out)
        recipe = Recipe(kind=kind, vision=vision, embedding="fp16", decoder=decoder, positions=8192)
        manifest = export_model(checkpoint, out, recipe, name=f"compass-tiny-{part}")
        print(out, f"{manifest.bytes / 1e6:.2f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("roles", "tokenizer", "checkpoint"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--package", type=Path, help="where the exports go")
    parser.add_argument("--decoder", default="int8")
    parser.add_argument("--vision", default="int8")
    given = parser.parse_args()
    write_checkpoint(torch.load(given.roles, weights_only=True)["model"], given.tokenizer, given.checkpoint)
    if given.package:
        given.package.mkdir(parents=True, exist_ok=True)
        export_both(given.checkpoint, given.package, given.decoder, given.vision)
    return 0


if __name__ == "__main__":
    sys.exit(main())
