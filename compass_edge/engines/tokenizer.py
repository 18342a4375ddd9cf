"""The tokenizer of a checkpoint, read from its own files.

There are two ways into it, and they never mix. Text is text: whatever it spells out, `<|im_end|>` or `<think>`, it becomes
ordinary tokens. Control tokens come by their id, from whoever writes the prompt. It is done with a second tokenizer that
shares the model, the normalizer and the splitting of the first and has no added tokens at all. (The library's own switch,
`encode_special_tokens`, lets the added tokens through that are not marked special, such as `<think>`.)

Tokenizing the text between two control tokens alone is exact: added tokens split a text before anything else does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tokenizers

from compass_edge.engines import added_tokens
from compass_edge.engines.byte_alphabet import spelled_bytes
from compass_edge.engines.json_file import read_bytes, read_object_if_there
from compass_edge.engines.text_stream import TextStream
from compass_edge.errors import IntegrityError, UsageError

_TOKENIZER_BYTES = 128 << 20  # the largest real ones have about 20 MB
_CURE = "Fetch the model's folder again."

# Text, or the id of a token.
Piece = str | int


class Tokenizer:
    """The tokenizer of a model folder: tokenizer.json, with tokenizer_config.json where it is there.

    `size`: ids run below this, added tokens included (a model's logits may be wider: they are padded).
    `eos`: ids that end a reply, of whichever configuration files are there.
    `added`: the spelling of each added token.
    """

    size: int
    eos: frozenset[int]
    added: Mapping[int, str]

    def __init__(self, folder: Path) -> None:
        self._open(folder, ())

    @classmethod
    def with_tokens(cls, folder: Path, tokens: Sequence[str]) -> Tokenizer:
        """The folder's tokenizer with these special tokens after its last one, in this order; those it has it keeps."""
        tokenizer = cls.__new__(cls)
        tokenizer._open(folder, tokens)
        return tokenizer

    def _open(self, folder: Path, further: Sequence[str]) -> None:
        self._path = folder / "tokenizer.json"
        config = read_object_if_there(folder / "tokenizer_config.json")
        self._whole = _load(self._path)
        added_tokens.complete(self._whole, folder, config, further)
        self._plain = tokenizers.Tokenizer(self._whole.model)
        if self._whole.normalizer is not None:
            self._plain.normalizer = self._whole.normalizer
        self._plain.pre_tokenizer = self._whole.pre_tokenizer
        entries = self._whole.get_added_tokens_decoder()
        for entry in entries.values():
            if entry.lstrip or entry.rstrip or entry.single_word:
                raise UsageError(
                    f"Added tokens must take no blanks around them and stand in any place, and {entry.content!r} of "
                    f"{self._path} has lstrip, rstrip or single_word. Such tokenizers are not supported."
                )
        self.added = MappingProxyType({token_id: entry.content for token_id, entry in entries.items()})
        self._ids = {token: token_id for token_id, token in self.added.items()}
        self._silent = frozenset(token_id for token_id, entry in entries.items() if entry.special)
        self._bytes: dict[int, bytes] = dict.fromkeys(self._silent, b"")
        self.size = max(self._whole.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        self.eos = self._ends(folder, config)

    def encode(self, text: str) -> list[int]:
        """Plain text: a special token spelled out in it is text, not a token."""
        try:
            ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        except (UnicodeEncodeError, TypeError) as error:
            raise UsageError(
                f"Text for a model must be whole Unicode characters, and {text[:40]!a} cannot be encoded: {error}. "
                "Replace lone surrogates."
            ) from error
        if not self.added.keys().isdisjoint(ids):
            token = next(self.added[token_id] for token_id in ids if token_id in self.added)
            raise IntegrityError(
                f"Text must never become a control token, and {self._path} makes the token {token!r} of plain text. "
                "This tokenizer is not supported."
            )
        return ids

    def encode_markup(self, pieces: Sequence[Piece]) -> list[int]:
        """Text and tokens in a row. Texts that follow one another are one text."""
        ids: list[int] = []
        text: list[str] = []
        for piece in (*pieces, None):
            if isinstance(piece, str):
                text.append(piece)
                continue
            if text:
                ids += self.encode("".join(text))
                text.clear()
            if piece is not None:
                self._check(piece)
                ids.append(piece)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the tokens; special tokens are left out. Bytes that are no text become U+FFFD."""
        return b"".join(map(self._bytes_of, ids)).decode("utf-8", "replace")

    def stream(self) -> TextStream:
        """The same, token by token."""
        return TextStream(self._bytes_of)

    def id_of(self, token: str) -> int:
        """Of a special or added token, by its spelling."""
        try:
            return self._ids[token]
        except KeyError:
            raise IntegrityError(
                f"The tokenizer must have the added token {token!r}, and {self._path} has no such token. "
                "The folder is not of this kind of model, or its tokenizer files are not its own."
            ) from None

    def to_json(self) -> str:
        """A tokenizer.json that has everything in it, the added tokens of other files too."""
        text: str = self._whole.to_str()
        return text

    def _bytes_of(self, token_id: int) -> bytes:
        known = self._bytes.get(token_id)
        if known is None:
            token = self._check(token_id)
            spelled = None if token_id in self.added else spelled_bytes(token)
            known = self._bytes[token_id] = token.encode() if spelled is None else spelled
        return known

    def _check(self, token_id: int) -> str:
        token = self._whole.id_to_token(token_id) if 0 <= token_id < self.size else None
        if token is None:
            raise UsageError(
                f"A token id must be one of {self._path}, where they run from 0 to {self.size - 1}, and {token_id} came. "
                "The model and the tokenizer do not belong together, or padding was sampled."
            )
        return token

    def _ends(self, folder: Path, config: dict[str, Any]) -> frozenset[int]:
        """Whatever any of the files calls the end: a reply stops at each of them."""
        ends: set[int] = set()
        model = read_object_if_there(folder / "config.json")
        inner = model.get("text_config")
        for place, values in (
            (folder / "generation_config.json", read_object_if_there(folder / "generation_config.json")),
            (folder / "config.json", model),
            (folder / "config.json", inner if isinstance(inner, dict) else {}),
        ):
            given = values.get("eos_token_id")
            for token_id in given if isinstance(given, list) else [] if given is None else [given]:
                if isinstance(token_id, bool) or not isinstance(token_id, int) or not 0 <= token_id < self.size:
                    raise IntegrityError(
                        f'"eos_token_id" of {place} must be ids of the tokenizer, below {self.size}, and {token_id!r} '
                        f"came. {_CURE}"
                    )
                ends.add(token_id)
        spelled = config.get("eos_token")
        if isinstance(spelled, dict):
            spelled = spelled.get("content")
        if isinstance(spelled, str):
            ends.add(self.id_of(spelled))
        return frozenset(ends)


def _load(path: Path) -> tokenizers.Tokenizer:
    content = read_bytes(path, _TOKENIZER_BYTES)
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(content)
    except Exception as error:  # the library raises nothing more special
        raise IntegrityError(f"{path} must be a tokenizer, and it cannot be read: {error}. {_CURE}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if not isinstance(tokenizer.model, tokenizers.models.BPE) or not isinstance(
        tokenizer.decoder, tokenizers.decoders.ByteLevel
    ):
        raise UsageError(
            f"{path} must be a byte-level BPE tokenizer, as the Qwen models have, and it is "
            f"{type(tokenizer.model).__name__} with the decoder {type(tokenizer.decoder).__name__}. "
            "Other kinds are not supported."
        )
    return tokenizer
