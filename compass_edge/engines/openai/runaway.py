"""Replies that will not end: seen while they are written, so that the connection is closed instead of waited for.

Constrained decoding does not prevent them: JSON allows whitespace without end between two tokens, and vLLM with some models
writes just that until max_tokens (vllm#38696). A reply that is stopped here could not have fitted its schema any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compass_edge.roles.reply import MAX_BYTES

MAX_BLANK = 256  # whitespace in a row; a reply indented by 8 at depth 16 has half of it
MAX_BARE = 512  # characters of a number or a word
_SUBSCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")


def longest_string(schema: Mapping[str, Any]) -> int | None:
    """Characters that the longest string of a fitting reply can have; None if the schema does not bound it."""
    found = _lengths(schema)
    return None if None in found else max((length for length in found if length is not None), default=0)


def _lengths(schema: Any) -> set[int | None]:
    if not isinstance(schema, Mapping):
        return {None} if schema is True else set()
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return {len(value) for value in values if isinstance(value, str)} or {0}
    kind = schema.get("type")
    kinds = {kind} if isinstance(kind, str) else set(kind or ())
    parts = [part for name in _SUBSCHEMAS for part in schema.get(name, ())]
    parts += [part for name in ("properties", "$defs") for part in schema.get(name, {}).values()]
    found: set[int | None] = {len(name) for name in schema.get("properties", {})}
    if "string" in kinds:
        found.add(schema.get("maxLength"))
    if "array" in kinds:
        parts.append(schema.get("items", True))
    if "object" in kinds:
        parts.append(schema.get("additionalProperties", True))
    if not kinds and not parts and "$ref" not in schema:
        found.add(None)
    return found.union(*(_lengths(part) for part in parts))


class Runaway:
    """Reads a JSON object as it is written. `why` says what will not end, once something does not; `closed` that it has."""

    def __init__(self, longest: int | None) -> None:
        self._longest = None if longest is None else 2 * longest  # an escaped pair of surrogates counts twice
        self._depth = self._blank = self._bare = self._length = self._total = self._skip = 0
        self._quoted = self._escaped = False
        self.closed = False
        self.why = ""

    def feed(self, text: str) -> int:
        """Characters of the text up to the end of the object: all of them as long as it is not closed."""
        end = len(text)
        for place, char in enumerate(text):
            if self._quoted:
                self._in_string(char)
            else:
                was_closed = self.closed
                self._outside(char)
                if self.closed and not was_closed:
                    end = place + 1
        self._total += len(text)
        if self._total > MAX_BYTES:
            self.why = self.why or f"it was longer than {MAX_BYTES} bytes"
        return end

    def _in_string(self, char: str) -> None:
        if self._skip:
            self._skip -= 1
        elif self._escaped:
            self._escaped = False
            self._skip = 4 * (char == "u")
        elif char == "\\":
            self._escaped = True
            self._length += 1
        elif char == '"':
            self._quoted = False
        else:
            self._length += 1
        if self._longest is not None and self._length > self._longest:
            self.why = self.why or "a string went on beyond every maxLength of the schema"

    def _outside(self, char: str) -> None:
        if char in " \t\n\r":
            self._blank += 1
            self._bare = 0
            if self._blank > MAX_BLANK:
                self.why = self.why or f"more than {MAX_BLANK} characters of whitespace came in a row"
            return
        self._blank = 0
        self._bare = 0 if char in '{}[],:"' else self._bare + 1
        if self._bare > MAX_BARE:
            self.why = self.why or f"a number or a word had more than {MAX_BARE} characters"
        if char == '"':
            self._quoted, self._length = True, 0
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            self.closed = self.closed or self._depth == 0
