"""Words and images to a prompt: the tokenizer and template of a model; the same whatever runs its graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compass_edge.engines.architecture import Tokens
from compass_edge.engines.chat import Chat, Part
from compass_edge.engines.file_record import CURE
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.prompt import Prompt, expand
from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import IntegrityError
from compass_edge.models import Image


class Prompter:
    def __init__(
        self, folder: Path, manifest: Manifest, tokens: Tokens, grid_of: Callable[[Image], tuple[int, int]]
    ) -> None:
        self._tokens, self._grid_of = tokens, grid_of
        place = str(manifest.tokenizer.get("folder", ""))
        if f"{place}/tokenizer.json" not in manifest.files:
            raise IntegrityError(f"The manifest of '{folder}' names no tokenizer that is among its files. {CURE}")
        self.tokenizer = Tokenizer(folder / place)
        self.chat = Chat(folder / place, self.tokenizer)
        if self.chat.image != tokens.image:
            raise IntegrityError(
                f"The tokenizer in '{folder}' has the image token {self.chat.image}, and the model was made with "
                f"{tokens.image}. The checkpoint's files do not belong together: fetch it and export it again."
            )

    def prompt(
        self,
        parts: Sequence[str | int | Image],
        options: Mapping[str, object],
        *,
        generation: bool,
        begun: Sequence[int] = (),
    ) -> Prompt:
        """One turn of the user's, and what of the reply is fixed already."""
        said: list[Part] = [None if isinstance(part, Image) else part for part in parts]
        ids = self.chat.ids(said, options=options, generation=generation)
        images = [part for part in parts if isinstance(part, Image)]
        return expand([*ids, *begun], self._tokens.image, images, self._grid_of)
