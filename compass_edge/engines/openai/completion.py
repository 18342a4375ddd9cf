"""One piece of a chat completion, streamed or whole: what it adds to the reply."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from compass_edge.engines.openai.faults import Final, Passing, of_error_object


@dataclass(frozen=True, slots=True)
class Piece:
    text: str = ""
    thought: bool = False  # it adds to what the model thinks, which is not its reply
    finish: str = ""  # why the reply is over, if it is


def read_piece(data: str) -> Piece:
    """Of a chunk (`delta`) or of a whole completion (`message`)."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Passing(f"sent a piece of a reply that is no JSON: {data[:80]!r}.") from error
    if isinstance(value, dict) and value.get("error"):
        raise of_error_object(value["error"])
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list):
        raise Passing(f"sent a piece of a reply without choices: {data[:80]!r}.")
    chosen = [choice for choice in choices if isinstance(choice, dict) and choice.get("index", 0) == 0]
    if not chosen:
        return Piece()  # such as the count of tokens at the end
    finish = chosen[0].get("finish_reason")
    said = chosen[0].get("delta") or chosen[0].get("message") or {}
    if not isinstance(said, dict) or not isinstance(finish, str | None):
        raise Passing(f"sent a piece of a reply that has another form than the protocol's: {data[:80]!r}.")
    if said.get("refusal"):
        raise Final(f"let the model refuse: {str(said['refusal'])[:200]!r}.")
    return Piece(_content(said, data), bool(said.get("reasoning_content") or said.get("reasoning")), finish or "")


def _content(said: dict[str, Any], data: str) -> str:
    content = said.get("content")
    if content is None:
        return ""
    if not isinstance(content, str):
        raise Passing(f"sent a piece of a reply whose content is no text: {data[:80]!r}.")
    return content
