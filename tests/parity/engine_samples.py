"""What the tests of the engine against transformers share: pictures, a model in transformers, an export of it beside it.

The original is float32 with eager attention and random weights. Both sides get the same patches and the same ids. Logits
may differ by 1e-3 (they spread over several units), features of the tower by 1e-5, and what two ways through our own engine
give by 1e-4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from random_checkpoints import VOCABULARY, write_checkpoint

from compass_edge import _native
from compass_edge.engines.constraint import Grammars
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.frames.patches import FAMILIES as PREPROCESSING
from compass_edge.models import Image, Question

LOGITS, FEATURES, OURS = 1e-3, 1e-5, 1e-4
LEAST = 3136  # pixels of a frame, so that the tests can use small ones
NO_THINKING = {"enable_thinking": False}
# (width, height): whole and broken windows of Qwen2.5, wide, tall, one token high; the last ones are resized.
SIZES = [(112, 112), (224, 112), (96, 160), (320, 64), (128, 32), (100, 75), (61, 190)]


def drawn(width: int, height: int, seed: int) -> Image:
    """Waves and noise, with a hard edge."""
    rng = np.random.default_rng([width, height, seed])
    high, wide = np.mgrid[0:height, 0:width]
    waves = [127 + 90 * np.sin(wide / rng.uniform(3, 20) + high / rng.uniform(3, 20)) for _ in range(3)]
    pixels = np.stack(waves, axis=-1) + rng.normal(0, 20, (height, width, 3))
    pixels[height // 3 : height // 2, width // 4 : width // 2] = rng.integers(0, 256, 3)
    return Image(f"{width}x{height} {seed}", np.clip(pixels, 0, 255).astype(np.uint8))


def furthest(found: Any, expected: Any) -> float:
    """The largest difference; NaN if there is one, which is below no tolerance."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max())


class Whole(NamedTuple):
    """What transformers makes of a sequence."""

    logits: np.ndarray  # [tokens, vocabulary], with an axis before it for a batch
    cache: Any


class Reference:
    """The model in transformers."""

    def __init__(self, family: str, folder: Path) -> None:
        self.family, self.folder = family, folder
        self.model = write_checkpoint(family, folder)
        size = {"shortest_edge": LEAST, "longest_edge": 1 << 20}
        (folder / "preprocessor_config.json").write_text(json.dumps({"size": size}))
        settings = {**PREPROCESSING[family], "min_pixels": LEAST, "max_pixels": 1 << 20}
        self._preprocess = _native.Preprocessor(**settings, merge=2, temporal=2, dtype="f32")
        self._read: dict[Any, Whole] = {}
        self._replies: dict[str, str] = {}

    def patches(self, image: Image) -> tuple[np.ndarray, tuple[int, int]]:
        """[patches, columns] and the grid of them."""
        height, width = image.pixels.shape[:2]
        return self._preprocess.run(image.pixels), self._preprocess.grid(width, height)

    def pictures(self, images: Sequence[Image]) -> dict[str, Any]:
        if not images:
            return {}
        patches, grids = zip(*map(self.patches, images), strict=True)
        return {
            "pixel_values": torch.from_numpy(np.concatenate(patches)),
            "image_grid_thw": torch.tensor([(1, *grid) for grid in grids]),
        }

    def kinds(self, ids: Any) -> Any:
        """1 for a token of an image, 2 for one of a video."""
        config = self.model.config
        return (ids == config.image_token_id).int() + 2 * (ids == config.video_token_id).int()

    @torch.inference_mode()
    def read(self, ids: Any, **given: Any) -> Whole:
        """A batch if `ids` have two axes. Without a mask: with one, positions of later steps would be wrong."""
        tokens = torch.as_tensor(np.asarray(ids))
        tokens = tokens if tokens.dim() == 2 else tokens[None]
        self.model.model.rope_deltas = None  # those of the sequence before would be used for words alone
        kinds = self.kinds(tokens) if given else None
        made = self.model(input_ids=tokens, mm_token_type_ids=kinds, use_cache=True, **given)
        logits = made.logits.numpy()
        return Whole(logits[0] if np.ndim(ids) == 1 else logits, made.past_key_values)

    @torch.inference_mode()
    def step(self, cache: Any, tokens: Sequence[int]) -> np.ndarray:
        """One token further in each row, behind the sequence that was read last."""
        made = self.model(input_ids=torch.tensor(tokens)[:, None], past_key_values=cache, use_cache=True)
        return made.logits[:, 0].numpy()

    def follow(self, prompt: Prompt, tokens: Sequence[int] = (), *, stepwise: bool = False) -> Whole:
        """A prompt and tokens behind it: at once, or one by one with a cache. Kept for the other dialect."""
        images = [picture.image for picture in prompt.pictures]
        key = (*prompt.keys.tolist(), *tokens, stepwise, len(tokens))
        if key not in self._read:
            begun = self.read([*prompt.ids.tolist(), *([] if stepwise else tokens)], **self.pictures(images))
            further = [self.step(begun.cache, [token]) for token in tokens] if stepwise else []
            self._read[key] = Whole(np.concatenate([begun.logits, *further]), begun.cache)
        return self._read[key]

    def reply(self, body: Body, question: Question) -> str:
        """The likeliest token that the schema allows, one after the other."""
        key = question.digest(self.family)
        if key not in self._replies:
            self._replies[key] = self._written(body, question)
        return self._replies[key]

    def _written(self, body: Body, question: Question) -> str:
        constraint = Grammars(body.tokenizer, VOCABULARY).start(question.schema)
        prompt, tokens = prompted(body, *question.parts), []
        begun = self.read(prompt.ids, **self.pictures([picture.image for picture in prompt.pictures]))
        row = begun.logits[-1].copy()
        while True:
            constraint.mask(row)
            tokens.append(int(row.argmax()))
            constraint.take(tokens[-1])
            if constraint.over or len(tokens) == question.max_tokens:
                return bytes(token for token in tokens if token < 256).decode(errors="replace")
            row = self.step(begun.cache, tokens[-1:])[0].copy()


@dataclass(frozen=True)
class Case:
    """An exported model beside its original."""

    reference: Reference
    folder: Path

    def open(self, **options: Any) -> OnnxVlm:
        return OnnxVlm(self.folder, Options(**{"threads": 1, "context": 1024, "self_test": False, **options}))

    @cached_property
    def vlm(self) -> OnnxVlm:
        """One that several tests use; whoever does forgets first."""
        return self.open()

    @cached_property
    def small(self) -> OnnxVlm:
        """The same with three rows."""
        return self.open(batch=1, prefixes=2)


def spoil(body: Body) -> None:
    """What a row held before must not matter: neither keys beyond its length nor states of another sequence."""
    for buffer in (*body.decoder.memory.cache.values(), *body.decoder.memory.states.values()):
        buffer[...] = 3.0


def prompted(body: Body, *parts: str | Image, begun: Sequence[int] = ()) -> Prompt:
    return body.prompt(parts, NO_THINKING, generation=True, begun=begun)


def tokens_of(count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, 256, count).tolist()


def held(body: Body, row: int, length: int) -> dict[str, np.ndarray]:
    """A row's keys and values so far, and its states."""
    memory = body.decoder.memory
    cache = {name: values[row, :, :length].copy() for name, values in memory.cache.items()}
    return cache | {name: state[row].copy() for name, state in memory.states.items()}


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float = OURS) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert furthest(found[name], values) < tolerance, name


def video_patches(reference: Reference, count: int, width: int, height: int) -> tuple[np.ndarray, tuple[int, int]]:
    """[pairs, patches, columns]: each row has a patch of one frame and the same place of the next."""
    frames = [reference.patches(drawn(width, height, seed)) for seed in range(count)]
    blocks = np.stack([patches.reshape(len(patches), 3, 2, -1) for patches, _ in frames])
    pairs = np.stack([blocks[0::2, :, :, 0], blocks[1::2, :, :, 1]], axis=3)
    return np.ascontiguousarray(pairs.reshape(count // 2, len(frames[0][0]), -1)), frames[0][1]


def several_sizes(body: Body) -> Prompt:
    images = [drawn(*size, seed) for seed, size in enumerate(SIZES[:5])]
    return prompted(
        body, "Before: ", images[0], "after:", images[1], images[2], " und sö. ", images[3], images[4], "Done?"
    )
