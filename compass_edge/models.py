"""The two protocols that every engine implements, and what they are asked.

Both are functions of their input alone: the same clip or question gives the same answer (temperature 0, frozen weights).
The loop relies on it: it may ask early, keep the answer under the hash of the input, and use it when its turn comes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Image:
    """A frame as a model gets it. Two images with one digest are the same picture, whatever holds the pixels."""

    digest: str
    pixels: Any = field(default=None, compare=False, repr=False)  # a compass_edge._native.Frame, or an RGB array


@dataclass(frozen=True, slots=True)
class Clip:
    """The frames since a step began, oldest first, and the step's sentence."""

    sentence: str
    frames: tuple[Image, ...]

    def digest(self, model: str) -> str:
        return _digest("clip", model, self.sentence, *(frame.digest for frame in self.frames))


@dataclass(frozen=True, slots=True)
class Question:
    """Text and images in reading order, and the JSON schema that the answer must fit."""

    parts: tuple[str | Image, ...]
    schema: Mapping[str, Any] = field(compare=False)
    max_tokens: int = 1024

    def digest(self, model: str) -> str:
        parts = ((part, "") if isinstance(part, str) else ("", part.digest) for part in self.parts)
        schema = json.dumps(self.schema, sort_keys=True)
        return _digest("question", model, schema, str(self.max_tokens), *(text for part in parts for text in part))


def _digest(*texts: str) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "little"))
        hashed.update(encoded)
    return hashed.hexdigest()


class ProgressModel(Protocol):
    """The frozen progress reward model P: how far the sentence has come at the last frame of each clip, 0 to 1."""

    @property
    def name(self) -> str:
        """Weights and settings: part of the hash of every call."""

    @property
    def max_batch(self) -> int:
        """Clips it takes at once."""

    def score(self, clips: Sequence[Clip]) -> Sequence[float]: ...


# Where in the batch, and the piece of text that was just written.
OnText = Callable[[int, str], None]
# True when nobody waits for the answer any more: the engine may stop between two tokens.
Cancelled = Callable[[], bool]


class VisionLanguageModel(Protocol):
    """The model behind Orienter or Verifier. It returns text; whoever asked checks it against the schema."""

    @property
    def name(self) -> str: ...

    @property
    def max_batch(self) -> int: ...

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]: ...
