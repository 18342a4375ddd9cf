"""The top-level fields of a JSON object while it is being written.

O and V write their fields in a fixed order, and the loop wants an early field (V's description of the candidate, O's
sentence) long before the last one. The scanner hands out each field once it can no longer change.
"""

from __future__ import annotations

from typing import Any, Literal

from compass_edge.roles.reply import MAX_BYTES, MAX_DEPTH, InvalidReply, parse, size

_WHITESPACE = " \t\n\r"
_State = Literal["object", "key", "colon", "value", "comma"]
# From what is awaited, and the character that came, to what is awaited next.
_NEXT: dict[tuple[_State, str], _State] = {("object", "{"): "key", ("colon", ":"): "value", ("comma", ","): "key"}


class Fields:
    """Fed piece by piece, wherever the pieces were cut. Each character is looked at once.

    It promises less than `reply.read`: what it gave stays true only if the whole reply turns out to be valid. It refuses
    what `read` refuses, as soon as it can see it, and then stays silent.
    """

    def __init__(self) -> None:
        self._state: _State = "object"
        self._token: list[str] = []  # of a key or a value in progress
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._key = ""
        self._seen: set[str] = set()
        self._bytes = 0
        self._over = False

    def feed(self, piece: str) -> list[tuple[str, Any]]:
        """The fields that this piece completed, in order."""
        found: list[tuple[str, Any]] = []
        if not self._over:
            self._bytes += size(piece)
            self._over = self._bytes > MAX_BYTES
        for char in piece:
            if self._over:
                self._token.clear()
                break
            try:
                self._take(char, found)
            except InvalidReply:
                self._over = True
        return found

    def _take(self, char: str, found: list[tuple[str, Any]]) -> None:
        if self._token:
            self._extend(char, found)
        elif char in _WHITESPACE:
            return
        elif char == '"' if self._state == "key" else self._state == "value":
            self._token.append(char)
            self._quoted = char == '"'
            self._depth = int(char in "[{")
        elif (self._state, char) in _NEXT:
            self._state = _NEXT[self._state, char]
        else:
            self._over = True  # the end of the object, or none of JSON

    def _extend(self, char: str, found: list[tuple[str, Any]]) -> None:
        """One more character of a key or a value."""
        bare = not self._quoted and self._depth == 0  # a number or a word: it ends where the next thing begins
        if bare and char in ",}":
            self._complete(found)
            self._state = "key"
            self._over = char == "}"
            return
        self._token.append(char)
        if self._quoted:
            self._quoted, self._escaped = self._escaped or char != '"', char == "\\" and not self._escaped
        elif not bare:
            self._quoted = char == '"'
            self._depth += (char in "[{") - (char in "]}")
        if self._depth >= MAX_DEPTH:  # the object itself is one level more
            self._over = True
        elif not (bare or self._quoted or self._depth):
            self._complete(found)

    def _complete(self, found: list[tuple[str, Any]]) -> None:
        value = parse("".join(self._token))
        self._token.clear()
        if self._state == "value":
            found.append((self._key, value))
            self._state = "comma"
            return
        self._over = value in self._seen
        self._seen.add(value)
        self._key = value
        self._state = "colon"
