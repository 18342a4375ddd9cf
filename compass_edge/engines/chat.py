"""A question as the tokens of one user turn, in the checkpoint's own chat template.

For harmless text the tokens are those of transformers. For text that spells out control tokens they are not: there it
would become control, and here it stays text. The way to both:

1. The template is rendered with a private-use character in place of each text. What it writes besides is its own, so the
   added tokens found there are meant as tokens. Blanks at the ends of a text stay beside its character, because some
   templates trim.
2. The texts go back to their places, and each stretch between two tokens is tokenized as one text in which nothing is a
   token (`Tokenizer.encode`). That is exact, because added tokens split a text before anything else does.
3. If no stretch spells out a token, the template is rendered once more with the texts themselves, and both must agree:
   a template that does anything else with a text (cuts it, changes its case, looks for a word in it) is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from compass_edge.engines.chat_template import ChatTemplate, Content
from compass_edge.engines.json_file import read_object_if_there
from compass_edge.engines.tokenizer import Piece, Tokenizer
from compass_edge.errors import IntegrityError, UsageError

_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD  # private use: no text has a reason to hold them
_IMAGE = "<|image_pad|>"
_NO_OPTIONS: Mapping[str, object] = {}

# Text; an image; or a token that is part of the prompt (RoboMeter's <|prog_token|>), by its id.
Part = str | int | None


class Chat:
    """The checkpoint's own chat template (chat_template.jinja, chat_template.json, or tokenizer_config.json).

    `image`: the token that stands for an image, None if the tokenizer has none.
    """

    image: int | None

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._template = ChatTemplate(folder)
        self.image = _image(folder, tokenizer)
        longest_first = sorted(tokenizer.added.values(), key=len, reverse=True)
        self._tokens = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._as_items = self._takes_items()

    def ids(
        self, parts: Sequence[Part], *, options: Mapping[str, object] = _NO_OPTIONS, generation: bool = True
    ) -> list[int]:
        """One user turn of the parts in reading order. Each image is one image token, for the caller to expand.

        `options` go to the template (add_vision_id, enable_thinking, ...). With `generation` the assistant's turn is
        opened.
        """
        self._check_tokens(parts)
        marks = _marks(parts, self._template.text)
        shown = [_shown(part, mark) for part, mark in zip(parts, marks, strict=True)]
        rendered = self._template.render(self._content(shown), options=options, generation=generation)
        pieces = self._pieces(rendered, parts, marks)
        if not any(isinstance(piece, str) and self._tokens.search(piece) for piece in pieces):
            self._compare(pieces, parts, options, generation)
        return self._tokenizer.encode_markup(pieces)

    def _check_tokens(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, int) and (part == self.image or part not in self._tokenizer.added):
                raise UsageError(
                    f"A token among the parts of a turn must be an added one other than the image's, and {part} came. "
                    "Take it from the tokenizer's id_of; an image is None."
                )

    def _pieces(self, rendered: str, parts: Sequence[Part], marks: Sequence[str | None]) -> list[Piece]:
        """The template's tokens, and the stretches of text between them with the parts back in their places."""
        places = {mark: place for place, mark in enumerate(marks) if mark}
        pieces: list[Piece] = []
        stretch: list[str] = []
        met: list[int | None] = []
        pattern = re.compile(f"{self._tokens.pattern}|[{''.join(places)}]") if places else self._tokens
        end = 0
        for match in pattern.finditer(rendered):
            stretch.append(rendered[end : match.start()])
            end = match.end()
            place = places.get(match[0])
            part = self._tokenizer.id_of(match[0]) if place is None else parts[place]
            if isinstance(part, str):
                stretch.append(part.strip())
            elif part is not None:
                pieces += ["".join(stretch), part]
                stretch.clear()
            if place is not None or part == self.image:
                met.append(place)
        pieces.append("".join((*stretch, rendered[end:])))
        expected = [place if mark else None for place, mark in enumerate(marks) if mark or parts[place] is None]
        if met != expected:
            raise IntegrityError(
                f"The chat template of {self._template.place} must write every text and image of a turn once and in "
                f"order, and it wrote {_listed(met)} where {_listed(expected)} were given. This template is not "
                "supported for such a turn."
            )
        return [piece for piece in pieces if piece != ""]

    def _compare(
        self, pieces: Sequence[Piece], parts: Sequence[Part], options: Mapping[str, object], generation: bool
    ) -> None:
        added = self._tokenizer.added
        content = self._content([added[part] if isinstance(part, int) else part for part in parts])
        rendered = self._template.render(content, options=options, generation=generation)
        if rendered != "".join(added[piece] if isinstance(piece, int) else piece for piece in pieces):
            raise IntegrityError(
                f"The chat template of {self._template.place} must put a text into the turn as it is, and it changes "
                "it or decides by what it says. This template is not supported for such a text."
            )

    def _content(self, shown: Sequence[str | None]) -> Content:
        if self._as_items:
            return [
                {"type": "image", "image": ""} if text is None else {"type": "text", "text": text} for text in shown
            ]
        if None in shown:
            raise UsageError(
                f"A question with images needs a chat template that takes them, and the one of {self._template.place} "
                "takes text alone: no images. Fetch the checkpoint of a vision-language model with its own template."
            )
        return "".join(text for text in shown if text is not None)

    def _takes_items(self) -> bool:
        """Templates of models without images drop a turn that is a list of items: they get one string."""
        probe = chr(_LAST_MARK)
        try:
            return probe in self._template.render([{"type": "text", "text": probe}], options={}, generation=False)
        except (IntegrityError, UsageError):
            return False


def _image(folder: Path, tokenizer: Tokenizer) -> int | None:
    """config.json says which; a folder without it is of the family that calls it `<|image_pad|>`."""
    given = read_object_if_there(folder / "config.json").get("image_token_id")
    if given is None:
        return tokenizer.id_of(_IMAGE) if _IMAGE in tokenizer.added.values() else None
    if isinstance(given, bool) or given not in tokenizer.added:
        raise IntegrityError(
            f'"image_token_id" of {folder / "config.json"} must be an added token of the tokenizer, and {given!r} is '
            "none. The two files do not belong together: fetch the model's folder again."
        )
    return int(given)


def _marks(parts: Sequence[Part], template: str) -> list[str | None]:
    """A character for each part that has something to hide: no image, and no text of blanks alone."""
    taken = set(template).union(*(part for part in parts if isinstance(part, str)))
    free = (mark for mark in map(chr, range(_FIRST_MARK, _LAST_MARK)) if mark not in taken)
    marks: list[str | None] = []
    for part in parts:
        hides = isinstance(part, int) or (part is not None and bool(part.strip()))
        mark = next(free, None) if hides else None
        if hides and mark is None:
            raise UsageError(
                f"A turn must have fewer than {_LAST_MARK - _FIRST_MARK} parts and leave private-use characters free, "
                "and none is left. Join the texts of the question, or clean them."
            )
        marks.append(mark)
    return marks


def _shown(part: Part, mark: str | None) -> str | None:
    if not isinstance(part, str):
        return mark
    if mark is None:
        return part
    begin, end = len(part) - len(part.lstrip()), len(part.rstrip())
    return part[:begin] + mark + part[end:]


def _listed(places: Sequence[int | None]) -> str:
    names = ["an image" if place is None else f"part {place}" for place in places[:12]]
    return (", ".join(names) or "nothing") + (", ..." if len(places) > 12 else "")
