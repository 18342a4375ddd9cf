"""Tokens that a checkpoint has beyond the vocabulary of its tokenizer.json.

transformers keeps them in three places: tokenizer.json itself, `added_tokens_decoder` of tokenizer_config.json, and (older)
added_tokens.json. A token that only the latter two name is real as well: the model has an embedding for its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers

from compass_edge.engines.json_file import read_object_if_there
from compass_edge.errors import IntegrityError, UsageError

_CURE = "Fetch the model's folder again."


def complete(tokenizer: tokenizers.Tokenizer, folder: Path, config: dict[str, Any], further: Sequence[str]) -> None:
    """Adds what the folder's other files name, each under the id that they give, and then `further` special tokens."""
    for token, (token_id, special, place) in sorted(_named(folder, config).items(), key=lambda named: named[1][0]):
        known = tokenizer.token_to_id(token)
        if known is None:
            _add(tokenizer, token, special)
            known = tokenizer.token_to_id(token)
        if known != token_id:
            raise IntegrityError(
                f"{place} gives the token {token!r} the id {token_id}, and with the folder's tokenizer.json it has "
                f"{known}: the two files do not belong together. {_CURE}"
            )
    for token in further:
        if not token:
            raise UsageError("A token that is added must have a spelling, and an empty one came. Name the token.")
        if tokenizer.token_to_id(token) is None:
            _add(tokenizer, token, special=True)


def _named(folder: Path, config: dict[str, Any]) -> dict[str, tuple[int, bool, Path]]:
    named: dict[str, tuple[int, bool, Path]] = {}
    older = folder / "added_tokens.json"
    for token, token_id in read_object_if_there(older).items():
        named[token] = (_id(token_id, older), True, older)
    newer = folder / "tokenizer_config.json"
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise IntegrityError(f'"added_tokens_decoder" of {newer} must be an object, and it is not. {_CURE}')
    for text, entry in decoder.items():
        content = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(content, str) or not content:
            raise IntegrityError(
                f'"added_tokens_decoder" of {newer} must give each id a token with a "content", and {text!r} has none. '
                f"{_CURE}"
            )
        special = entry.get("special", False) is True
        named[content] = (_id(int(text) if text.isdecimal() else text, newer), special, newer)
    return named


def _id(value: object, place: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise IntegrityError(f"{place} must give each token a whole number as its id, and {value!r} came. {_CURE}")
    return value


def _add(tokenizer: tokenizers.Tokenizer, token: str, special: bool) -> None:
    entry = tokenizers.AddedToken(token, normalized=False, special=special)
    (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([entry])
