"""Takes the checksums of patches.json from the reference, torch: `python tests/goldens/make_patches.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER.parent / "python"), str(FOLDER.parent / "parity")]

from test_patches import checksum, pattern
from test_preprocess import MODELS, RESIZED, UNCHANGED, torch_patches
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from compass_edge.frames.patches import FAMILIES

SIZES = [*UNCHANGED["qwen3"], *UNCHANGED["qwen25"], *RESIZED]


def golden(family: str, width: int, height: int) -> dict[str, object]:
    settings = MODELS[family] = FAMILIES[family]
    patch = settings["patch"]
    # The grid by transformers' rule, not by ours.
    resized = smart_resize(height, width, 2 * patch, settings["min_pixels"], settings["max_pixels"])
    patches = torch_patches(family, pattern(width, height))
    return {
        "size": [width, height],
        "grid": [resized[0] // patch, resized[1] // patch],
        "f32": checksum(patches.numpy()),
        "f16": checksum(patches.half().numpy()),
        "bf16": checksum(patches.bfloat16().view(torch.uint16).numpy()),
    }


def main() -> None:
    made = {family: [golden(family, *size) for size in SIZES] for family in ("qwen3-vl", "qwen2.5-vl")}
    lines = [f'"{family}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for family, rows in made.items()]
    (FOLDER / "patches.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
