"""A model's folder with a true manifest; its graphs are only bytes, which is all that a manifest knows of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from compass_edge.engines.manifest import Manifest, record_files, write_manifest

FILES = {
    "decoder.onnx": b"graph" * 20,
    "decoder.onnx.data": bytes(range(256)) * 3,
    "tokenizer/tokenizer.json": b"{}",
}


def manifest_of(folder: Path, **changes: Any) -> Manifest:
    made = Manifest(
        name=folder.name,
        kind="vlm",
        family="qwen3_vl",
        dialect="ort",
        precision={"vision": "fp32", "decoder": "int8"},
        architecture={"layers": 2, "theta": 5e6, "sections": [24, 20, 20]},
        preprocessing={"patch": 16},
        tokenizer={"file": "tokenizer/tokenizer.json"},
        files=record_files(folder),
        source={"name": "Checkpoint-4B", "sha256": "0" * 64},
        golden={"tokens": [1, 2, 3], "logits": [0.25, -1e-7]},
    )
    return replace(made, **changes)


def write_model(folder: Path, **changes: Any) -> Path:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    write_manifest(folder, manifest_of(folder, **changes))
    return folder


def forge(folder: Path, **changes: Any) -> None:
    """Writes the manifest anew with these changes and a hash that fits, as somebody would who means it."""
    from compass_edge.engines.manifest import _rendered

    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    del document["sha256"]
    document.update(changes)
    path.write_text(_rendered({key: value for key, value in document.items() if value is not ...}))
