"""What a reward model asks of whatever runs its graphs: the seam between RoboMeter and its engines."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from compass_edge.engines.architecture import Tokens
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.models import Image


class ScoringBody(Protocol):
    """One thread at a time: whoever uses it holds `lock`."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def tokens(self) -> Tokens: ...

    @property
    def lock(self) -> threading.Lock: ...

    @property
    def name(self) -> str:
        """Changes with anything that changes what the model says."""

    @property
    def max_batch(self) -> int:
        """Prompts that go through together."""

    @property
    def remembers(self) -> bool:
        """Whether a prompt is read from where it differs from an earlier one; else prompts are read whole and together."""

    def prompt(
        self,
        parts: Sequence[str | int | Image],
        options: Mapping[str, object],
        *,
        generation: bool,
        begun: Sequence[int] = (),
    ) -> Prompt: ...

    def prepare(self, images: Sequence[Image]) -> None:
        """Encodes them ahead, several at a time, while there is room to keep them."""

    def encoded(self, image: Image) -> NDArray[Any]:
        """What the decoder reads for it, [tokens, hidden]."""

    def read_each(self, prompts: Sequence[Prompt], wanted: Sequence[Sequence[int]]) -> list[dict[str, NDArray[Any]]]:
        """What the heads give at the wanted places of each."""

    def forget(self) -> None:
        """All that was read, and the counts of it."""
