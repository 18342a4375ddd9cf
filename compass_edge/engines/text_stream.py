"""Text out of tokens while they are being written.

A byte-level token is a string of bytes and may end in the middle of a character, so a stream holds back what the next
token could still complete. What was handed out never changes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

_Utf8 = codecs.getincrementaldecoder("utf-8")


class TextStream:
    """Fed token by token; the pieces together are what `Tokenizer.decode` gives for all of them at once."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        self._bytes_of = bytes_of
        self._decoder = _Utf8("replace")

    def feed(self, token: int) -> str:
        """The text that is certain now, possibly none."""
        return self._decoder.decode(self._bytes_of(token))

    def end(self) -> str:
        """What is left: nothing, or the mark for half a character."""
        return self._decoder.decode(b"", final=True)
