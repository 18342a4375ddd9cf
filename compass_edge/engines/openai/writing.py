"""A reply while it is written: the JSON without what models like to put around it.

Thinking that is closed is taken off, and one code fence. Anything else stays, and is refused by whoever asked: guessing which
of several braces was meant would be reading what nobody wrote.
"""

from __future__ import annotations

import re

from compass_edge.engines.openai.runaway import MAX_BLANK, Runaway

_THOUGHT = "</think>"
_FENCE = re.compile(r"```[A-Za-z0-9]*\s*(?=\{)")
_MAYBE_FENCE = re.compile(r"`{1,2}\Z|```[A-Za-z0-9]*\s*\Z")


class Writing:
    """Fed with the pieces of a reply; gives back those of the JSON in it. What begins otherwise is held back until it ends."""

    def __init__(self, longest: int | None) -> None:
        self._runaway = Runaway(longest)
        self._held = ""  # before the JSON: thinking, or the beginning of a fence
        self._blank = 0
        self._began = self._fenced = False
        self._after = ""  # behind the JSON, if a fence was before it
        self.unwrapped = False

    @property
    def runaway(self) -> str:
        """What will not end, if something does not."""
        if self._blank > MAX_BLANK:
            return f"more than {MAX_BLANK} characters of whitespace came before anything else"
        return self._runaway.why

    def feed(self, piece: str) -> str:
        if self._began:
            return self._body(piece)
        self._held += piece
        text = self._held.lstrip()
        if not text:
            self._blank = len(self._held)
            return ""
        if not text.startswith(("{", "`")) and _THOUGHT in text:
            self.unwrapped = True
            self._held, after = "", text.partition(_THOUGHT)[2]
            return self.feed(after)
        if text.startswith("{"):
            return self._begin(text)
        if fence := _FENCE.match(text):
            self._fenced = self.unwrapped = True
            return self._begin(text[fence.end() :])
        if (blank := len(text) - len(text.rstrip())) and _MAYBE_FENCE.match(text):
            self._blank = blank
        return ""

    def end(self) -> str:
        """The rest, once no more will come."""
        if not self._began:
            return self._held
        return "" if self._after.strip() in ("", "```") else self._after

    def _begin(self, text: str) -> str:
        self._began, self._held, self._blank = True, "", 0
        return self._body(text)

    def _body(self, text: str) -> str:
        if self._fenced and self._runaway.closed:
            self._after += text
            return ""
        end = self._runaway.feed(text)
        if not self._fenced:
            return text
        self._after += text[end:]
        return text[:end]
