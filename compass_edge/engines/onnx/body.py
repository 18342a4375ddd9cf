"""A loaded model without its purpose: tokenizer, vision tower, embedding, decoder, and what they remember.

Reading a prompt begins behind what some row of the memory holds of it already; only images behind that place are encoded,
and those not twice. One thread at a time: whoever uses it holds `lock`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Architecture
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.decoder import Decoder, Outputs
from compass_edge.engines.onnx.embedding import Embedding
from compass_edge.engines.onnx.feature_store import FeatureStore
from compass_edge.engines.onnx.positions import word_positions
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.engines.onnx.prompter import Prompter
from compass_edge.engines.onnx.rows import Rows
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vision import Vision
from compass_edge.errors import UsageError
from compass_edge.models import Image

_PIECE = 128  # tokens of a pass at most: each is compared with all of its pass, also with those that it may not see
_NEAR = 32  # tokens that are not worth a snapshot of their own


class Body:
    def __init__(self, folder: Path, manifest: Manifest, options: Options, store: FeatureStore | None = None) -> None:
        self.manifest, self.options = manifest, options
        architecture = Architecture.from_dict(manifest.architecture)
        self.tokens = architecture.tokens
        if store is None:  # an empty one that is shared is false too
            store = FeatureStore(options.vision_bytes)
        self.vision = Vision(folder, manifest, architecture.tower, options, store)
        self._prompter = Prompter(folder, manifest, self.tokens, self.vision.grid)
        self.tokenizer, self.chat, self.prompt = self._prompter.tokenizer, self._prompter.chat, self._prompter.prompt
        if options.context > architecture.decoder.positions:
            raise UsageError(
                f"A context of {options.context} tokens was asked for, and '{folder}' was exported for {architecture.decoder.positions}. "
                "Open it for fewer, or export it with more positions."
            )
        self.embedding = Embedding(folder, options)
        self.decoder = Decoder(folder, architecture.decoder, options, rows=options.batch + options.prefixes)
        self.rows = Rows(self.decoder.memory, options.snapshot_bytes)
        self.lock = threading.Lock()

    @property
    def name(self) -> str:
        """Changes with anything that changes what the model says."""
        return f"{self.manifest.name}@{self.manifest.digest[:16]}"

    def forget(self) -> None:
        """All that was read, and the counts of it."""
        self.rows.forget_all()
        self.vision.passes = self.decoder.passes = self.decoder.tokens = 0

    @property
    def max_batch(self) -> int:
        return self.options.batch

    @property
    def remembers(self) -> bool:
        return self.decoder.cached

    def prepare(self, images: Sequence[Image]) -> None:
        self.vision.prepare(images)

    def encoded(self, image: Image) -> NDArray[Any]:
        made: NDArray[Any] = self.vision.features([image])[0].embeddings
        return made

    def read(self, prompt: Prompt, wanted: Sequence[int], row: int | None = None) -> tuple[int, Outputs]:
        """Reads it into a row (any, or the one given); what the head gives at the `wanted` places, in rising order."""
        if len(prompt) > self.options.context:
            raise UsageError(
                f"A prompt of {len(prompt)} tokens came, and the model was opened for {self.options.context} (context). Open it "
                "for more, or send fewer or smaller pictures."
            )
        row, start, shared = self.rows.begin(prompt.keys, wanted[0], row)
        try:
            return row, self._read_from(prompt, start, shared, np.array(wanted, np.int64), row)
        except BaseException:
            self.rows.forget(row)
            raise

    def read_each(self, prompts: Sequence[Prompt], wanted: Sequence[Sequence[int]]) -> list[Outputs]:
        """What the head gives at the wanted places of each: one after the other behind what is remembered of it, or together
        through a graph that remembers nothing.
        """
        if self.decoder.cached:
            return [self.read(prompt, places)[1] for prompt, places in zip(prompts, wanted, strict=True)]
        made: list[Outputs] = []
        for start in range(0, len(prompts), self.options.batch):
            some = slice(start, start + self.options.batch)
            made += self._read_together(prompts[some], wanted[some])
        return made

    def _read_together(self, prompts: Sequence[Prompt], wanted: Sequence[Sequence[int]]) -> list[Outputs]:
        """In one pass; shorter ones are padded behind their end, where nothing looks."""
        shape = (len(prompts), max(map(len, prompts)), self.decoder.numbers.hidden)
        embeddings, positions = np.zeros(shape, self.decoder.floats), np.zeros((3, *shape[:2]), np.int64)
        taps = np.zeros((self.decoder.numbers.taps, *shape), self.decoder.floats) if self.decoder.numbers.taps else None
        places = np.zeros((len(prompts), max(map(len, wanted))), np.int64)
        for at, (prompt, some) in enumerate(zip(prompts, wanted, strict=True)):
            words, tapped = self._features(prompt, 0).part(0, len(prompt))
            embeddings[at, : len(prompt)], positions[:, at, : len(prompt)] = words, prompt.positions
            if taps is not None and tapped is not None:
                taps[:, at, : len(prompt)] = tapped
            places[at, : len(some)] = some
        made = self.decoder.run_whole(embeddings, positions, places, taps)
        return [{name: values[at, : len(some)] for name, values in made.items()} for at, some in enumerate(wanted)]

    def _read_from(self, prompt: Prompt, start: int, shared: int, wanted: NDArray[np.int64], row: int) -> Outputs:
        features = self._features(prompt, start)
        gathered: dict[str, list[NDArray[Any]]] = {}
        stops = self._stops(prompt, start, shared)
        for begin, end in zip([start, *stops], stops, strict=False):
            embeddings, taps = features.part(begin, end)
            here = wanted[(wanted >= begin) & (wanted < end)] - begin
            made = self.decoder.run(
                row,
                [begin],
                embeddings[None],
                prompt.positions[:, None, begin:end],
                (here if here.size else np.zeros(1, np.int64))[None],
                None if taps is None else taps[:, None],
            )
            for name, values in made.items():
                gathered.setdefault(name, []).append(values[0, : here.size])
            self.rows.extend(row, prompt.keys[begin:end])
            self.rows.remember(row)
        return {name: np.concatenate(pieces) for name, pieces in gathered.items()}

    def advance(self, row: int, tokens: Sequence[Sequence[int]], positions: Sequence[int]) -> Outputs:
        """Reads further tokens into `row` and the rows behind it, equally many each, and gives what follows the last ones.

        What comes back is valid until the next pass. More than one token: one row at a time.
        """
        lengths = [self.rows.length(row + at) for at in range(len(tokens))]
        ids = np.array(tokens, np.int64)
        count, new = ids.shape
        placed = np.stack([word_positions(start, new) for start in positions], axis=1)
        embeddings = self.embedding.run(ids.reshape(-1)).reshape(count, new, -1)
        try:
            made = self.decoder.run(row, lengths, embeddings, placed, np.full((count, 1), new - 1, np.int64))
        except BaseException:
            for at in range(count):
                self.rows.forget(row + at)
            raise
        for at in range(count):
            self.rows.extend(row + at, ids[at])
        return made

    def _features(self, prompt: Prompt, start: int) -> _Mixed:
        needed = [picture for picture in prompt.pictures if picture.end > start]
        found = self.vision.features([picture.image for picture in needed])
        return _Mixed(self, prompt, dict(zip([picture.start for picture in needed], found, strict=True)))

    def _stops(self, prompt: Prompt, start: int, shared: int) -> list[int]:
        """Where passes end. Recurrent states also stop where a later prompt may differ: before an image, and where one did."""
        ends = {len(prompt)}
        if self.decoder.memory.recurrent:
            ends |= {picture.start for picture in prompt.pictures} | {shared}
        stops, last = [], start
        for end in sorted(ends):
            if end <= start or (end - last < _NEAR and end != len(prompt)):
                continue
            pieces = -(-(end - last) // _PIECE)
            stops += [last + (end - last) * piece // pieces for piece in range(1, pieces + 1)]
            last = end
        return stops


class _Mixed:
    """Vectors of a prompt: words from the table, images from the tower."""

    def __init__(self, body: Body, prompt: Prompt, features: Mapping[int, Any]) -> None:
        self._body, self._prompt, self._features = body, prompt, features

    def part(self, begin: int, end: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """[tokens, hidden], and [taps, tokens, hidden] if the decoder has taps and an image is there."""
        embeddings = self._body.embedding.run(self._prompt.ids[begin:end])
        taps: NDArray[Any] | None = None
        count = self._body.decoder.numbers.taps
        for picture in self._prompt.pictures:
            low, high = max(picture.start, begin), min(picture.end, end)
            if low >= high:
                continue
            features = self._features[picture.start]
            inside, here = slice(low - picture.start, high - picture.start), slice(low - begin, high - begin)
            embeddings[here] = features.embeddings[inside]
            if count:
                if taps is None:
                    taps = np.zeros((count, *embeddings.shape), embeddings.dtype)
                taps[:, here] = features.taps[:, inside]
        return embeddings, taps
