"""Runs inside TensorRT Edge-LLM's own environment, never in ours: `python driver.py JOB.json`.

It imports nothing of compass_edge, which is not installed there. Four things in that environment do not work as they come, and
each is put right here, before Edge-LLM is imported or after:

- Quantizer and exporter import `datasets`, only to read data sets of a hub. A module of that name that has nothing in it is enough.
- transformers makes the processor of a Qwen checkpoint from torchvision, whose wheels are built for CUDA alone and break
  transformers beside a torch for CPUs. The same pixels come from transformers' own processor on pillow.
- With nvfp4, modelopt sends the first layer of the vision tower through a CUDA kernel, though that tower is not quantized.
- nvfp4 and fp8 would be calibrated on text alone. Ranges must cover what pictures become inside the decoder too.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class _Nothing(types.ModuleType):
    """Every name can be imported from it, and whatever is called says that there is no hub."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def absent(*_: Any, **__: Any) -> Any:
            raise RuntimeError(
                f"datasets.{name} was called: compass-edge calibrates on frames, and never on a hub's data."
            )

        return absent


def _stand_in() -> None:
    module = _Nothing("datasets")
    module.__spec__ = importlib.machinery.ModuleSpec("datasets", None)  # transformers looks for it
    sys.modules["datasets"] = module


def processor_class(most_pixels: int) -> type:
    """What the quantizer takes for a processor: texts with pictures become tokens and patches."""
    torch: Any = importlib.import_module("torch")
    tokenizers: Any = importlib.import_module("transformers").AutoTokenizer
    pillow: Any = importlib.import_module("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")

    class Processor:
        def __init__(self, folder: str) -> None:
            config = json.loads(Path(folder, "config.json").read_text("utf-8"))
            vision = config["vision_config"]
            self._side = vision["patch_size"] * vision["spatial_merge_size"]
            self._merged = vision["spatial_merge_size"] ** 2
            self._token = config["image_token_id"]
            self._tokenizer = tokenizers.from_pretrained(folder)
            self._pictures = pillow.Qwen2VLImageProcessorPil(
                patch_size=vision["patch_size"],
                merge_size=vision["spatial_merge_size"],
                temporal_patch_size=vision["temporal_patch_size"],
                **_normalization(Path(folder)),
            )

        @classmethod
        def from_pretrained(cls, folder: str, **_: Any) -> Processor:
            return cls(folder)

        def apply_chat_template(self, messages: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
            text = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            pictures = [part["image"] for turn in messages for part in turn["content"] if part["type"] == "image"]
            size = {"shortest_edge": self._side**2, "longest_edge": max(most_pixels, self._side**2)}
            patches = self._pictures(images=pictures, return_tensors="pt", size=size)
            ids = self._tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"][0]
            counts = iter(int(grid.prod()) // self._merged for grid in patches["image_grid_thw"])
            widths = torch.tensor([next(counts) if token == self._token else 1 for token in ids.tolist()])
            tokens = torch.repeat_interleave(ids, widths)[None]
            kinds = (tokens == self._token).int()
            return {
                "input_ids": tokens,
                "attention_mask": torch.ones_like(tokens),
                "mm_token_type_ids": kinds,
                **patches,
            }

        def save_pretrained(self, folder: str) -> None:
            """The quantizer copies the checkpoint's own files besides."""

    return Processor


def _normalization(folder: Path) -> dict[str, Any]:
    path = folder / "preprocessor_config.json"
    told = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {name: told[name] for name in ("image_mean", "image_std") if name in told}


def quantize(job: dict[str, Any]) -> None:
    torch: Any = importlib.import_module("torch")
    quantizer: Any = importlib.import_module("tensorrt_edgellm.quantization.quantize")
    convolutions: Any = importlib.import_module("modelopt.torch.quantization.nn.modules.quant_conv")
    quantizer.AutoProcessor = processor_class(job["most_pixels"])
    quantizer._is_image_blind_calibration = lambda model, _config: hasattr(model.config, "vision_config")
    convolutions._QuantConv3d._should_use_implicit_gemm = lambda _module: False
    images: Any = importlib.import_module("PIL.Image")

    def texts() -> Iterator[str]:
        yield from (sample["text"] for sample in job["samples"])

    def pictures() -> Iterator[tuple[Any, str]]:
        for sample in job["samples"]:
            with images.open(sample["picture"]) as picture:
                yield picture.convert("RGB"), sample["text"]

    device = job["device"] if job["device"] != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    print(f"quantizing to {job['quantization']} on {device}, {len(job['samples'])} frames", flush=True)
    quantizer.quantize_and_export(
        job["checkpoint"],
        job["out"],
        job["quantization"],
        lm_head_quantization=job["head"],
        device=device,
        text_dataset=texts,
        image_dataset=pictures,
        num_samples=len(job["samples"]),
    )


def export(job: dict[str, Any]) -> None:
    exporter: Any = importlib.import_module("tensorrt_edgellm.scripts.export")
    sys.argv = ["export", *job["arguments"]]
    exporter.main()


def main(path: str) -> None:
    job = json.loads(Path(path).read_text("utf-8"))
    _stand_in()
    {"quantize": quantize, "export": export}[job["do"]](job)


if __name__ == "__main__":
    main(sys.argv[1])
