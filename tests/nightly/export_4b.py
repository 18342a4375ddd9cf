"""A RoboMeter of the real size with random weights: exported, loaded and asked, with the memory that each of them takes.

    .venv/bin/python tests/nightly/export_4b.py --precision int4

Prints JSON. Exits with 1 if the export needs more than 8 GiB: of its own; pages of mapped files, which the system takes back
when it wants to, are in export_peak_mb and not counted. Takes about 13 GB of disk and leaves nothing behind.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from checkpoint_samples import EXPERIMENT, Shapes, shapes_of, spread
from tokenizer_samples import VISION_TEMPLATE, qwen3_folder

MOST = 8 << 30
_SHARD = 2 << 30  # bytes of a shard, about
_BLOCK = 1 << 22  # random numbers that are written over and over
_FRAMES, _WIDTH, _HEIGHT = 8, 320, 240
# Tokens of Qwen3's own tokenizer; RoboMeter's five come behind its 151669.
_CONFIG: dict[str, Any] = {
    "model_type": "qwen3_vl",
    "architectures": ["RFM"],
    "image_token_id": 151655,
    "video_token_id": 151656,
    "eos_token_id": 151645,
    "tie_word_embeddings": False,
    "text_config": {
        "vocab_size": 151674,
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]},
    },
    "vision_config": {
        "depth": 24,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_heads": 16,
        "out_hidden_size": 2560,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [5, 11, 17],
    },
}
# To see that this script works: the same with few layers.
_SMALL = {"text_config": {"num_hidden_layers": 3}, "vision_config": {"depth": 3, "deepstack_visual_indexes": [0, 1, 2]}}


def config_of(small: bool) -> dict[str, Any]:
    changes: Mapping[str, Any] = _SMALL if small else {}
    return {
        key: {**value, **changes.get(key, {})} if isinstance(value, dict) else value for key, value in _CONFIG.items()
    }


def write_checkpoint(folder: Path, small: bool) -> int:
    """bfloat16, shard by shard, with Qwen3's tokenizer; its bytes."""
    config = config_of(small)
    qwen3_folder(folder, VISION_TEMPLATE)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "config.yaml").write_text(EXPERIMENT)
    shards = list(_shards(shapes_of("robometer", config)))
    dice = np.random.default_rng(0)
    block = dice.standard_normal(_BLOCK, np.float32)
    places: dict[str, str] = {}
    for number, shapes in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        _write_shard(folder / name, shapes, block, dice)
        places |= dict.fromkeys(shapes, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _shards(shapes: Shapes) -> Iterator[Shapes]:
    shard: Shapes = {}
    size = 0
    for name, shape in shapes.items():
        shard[name] = shape
        size += 2 * int(np.prod(shape))
        if size >= _SHARD:
            yield shard
            shard, size = {}, 0
    if shard:
        yield shard


def _write_shard(path: Path, shapes: Shapes, block: np.ndarray, dice: np.random.Generator) -> None:
    header: dict[str, Any] = {}
    at = 0
    for name, shape in shapes.items():
        end = at + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in shapes.items():
            middle, width = spread("robometer", name, shape)
            left = int(np.prod(shape))
            turned = np.roll(block, dice.integers(_BLOCK))[:left]  # tensors that begin alike would not be independent
            numbers = ((middle + width * turned).astype(np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
            while left:
                piece = numbers[: 2 * left]
                file.write(piece)
                left -= len(piece) // 2


@dataclass(frozen=True)
class Measured:
    """One child: what it printed, and megabytes (2^20 bytes). `peak` counts mapped pages of files, `anonymous` does not."""

    out: str
    seconds: float
    peak_mb: float
    anonymous_mb: float


def measured(arguments: Sequence[str | Path]) -> Measured:
    began, anonymous = time.monotonic(), 0
    with tempfile.TemporaryFile("w+") as file:  # a pipe would be full before it is read
        child = subprocess.Popen([sys.executable, *map(str, arguments)], stdout=file)
        try:
            while True:
                pid, status, used = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                anonymous = max(anonymous, _anonymous_kb(child.pid))
                time.sleep(0.02)
        except BaseException:
            child.send_signal(signal.SIGINT)
            child.wait()
            raise
        child.returncode = os.waitstatus_to_exitcode(status)
        file.seek(0)
        out = file.read()
    if child.returncode:
        sys.exit(f"{' '.join(map(str, arguments))} failed with {child.returncode}.")
    return Measured(out, time.monotonic() - began, used.ru_maxrss / 1024, anonymous / 1024)


def _anonymous_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def score(folder: Path) -> dict[str, Any]:
    """In a process of its own: loads the model and asks it about one clip."""
    from compass_edge.engines.onnx.session import Options
    from compass_edge.models import Clip, Image
    from compass_edge.prms.robometer import RoboMeter

    began = time.monotonic()
    meter = RoboMeter(folder, Options(context=2048, batch=1, prefixes=1))
    loaded = time.monotonic()
    dice = np.random.default_rng(0)
    frames = [Image(str(at), dice.integers(0, 256, (_HEIGHT, _WIDTH, 3), np.uint8)) for at in range(_FRAMES)]
    progress = meter.score([Clip("Put the red block into the box.", tuple(frames))])[0]
    done = time.monotonic()
    if not 0 <= progress <= 1:
        raise AssertionError(f"A progress of {progress} is none.")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"load_seconds": loaded - began, "clip_seconds": done - loaded, "run_peak_mb": peak, "progress": progress}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", default="int4", help="of the decoder (int4)")
    parser.add_argument("--vision", default="fp32", help="of the tower (fp32)")
    parser.add_argument("--small", action="store_true", help="few layers: to see that this script works")
    parser.add_argument(
        "--export-only", action="store_true", help="do not run it: fp32 needs more memory than it has bytes"
    )
    parser.add_argument("--folder", type=Path, help="where the temporary files go")
    parser.add_argument("--score", type=Path, help=argparse.SUPPRESS)  # this script's own child
    arguments = parser.parse_args()
    if arguments.score:
        print(json.dumps(score(arguments.score)))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folder goes too
    with tempfile.TemporaryDirectory(prefix="export_4b.", dir=arguments.folder) as place:
        checkpoint, model = Path(place) / "checkpoint", Path(place) / "model"
        checkpoint.mkdir()
        size = write_checkpoint(checkpoint, arguments.small)
        exported = measured(
            ["-m", "compass_edge.cli.main", "models", "export", checkpoint, "--out", model, "--json",
             "--precision", arguments.precision, "--vision", arguments.vision]
        )  # fmt: skip
        for path in checkpoint.iterdir():
            path.unlink()
        ran = None if arguments.export_only else measured([Path(__file__).resolve(), "--score", model])
        found = {
            "precision": arguments.precision,
            "checkpoint_mb": size / 2**20,
            "model_mb": json.loads(exported.out)["bytes"] / 2**20,
            "export_seconds": exported.seconds,
            "export_peak_mb": exported.peak_mb,
            "export_peak_anon_mb": exported.anonymous_mb,
            **({} if ran is None else {**json.loads(ran.out), "run_peak_anon_mb": ran.anonymous_mb}),
        }
    print(
        json.dumps(
            {name: round(value, 2) if isinstance(value, float) else value for name, value in found.items()}, indent=1
        )
    )
    return int(exported.anonymous_mb * 2**20 > MOST)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
