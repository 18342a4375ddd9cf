"""A reply while it is written: the JSON without what models like to put around it.

Thinking that is closed is taken off, and one code fence. Anything else stays, and is refused by whoever asked: guessing which
of several braces was meant would be reading what nobody wrote.
"""

from __future__ import annotations

import re

from compass_edge.engines.openai.runaway import MAX_BLANK, Runaway
from compass_edge.roles.reply import MAX_BYTES

MAX_THOUGHT = 4 * MAX_BYTES
_THOUGHT = "</think>"
_FENCE = re.compile(r"```[A-Za-z0-9]*\s*(?=\{)")
_MAYBE_FENCE = re.compile(r"`{1,2}\Z|```[A-Za-z0-9]*\s*\Z")


class Writing:
    """Fed with the pieces of a reply; gives back those of the JSON in it. What begins otherwise is held back until it ends."""

    def __init__(self, longest: int | None) -> None:
        self._runaway = Runaway(longest)
        self._held = ""  # before the JSON: thinking, or the beginning of a fence
        self._blank = 0
        self._began = self._fenced = self._prose = False
        self._after = ""  # behind the JSON, if a fence was before it
        self.unwrapped = False

    @property
    def runaway(self) -> str:
        """What will not end, if something does not."""
        if self._blank > MAX_BLANK:
            return f"more than {MAX_BLANK} characters of whitespace came before anything else"
        if len(self._held) > MAX_THOUGHT:
            return f"more than {MAX_THOUGHT} characters came before any JSON"
        return self._runaway.why

    def feed(self, piece: str) -> str:
        if self._began:
            return self._body(piece)
        self._held += piece
        if self._prose:
            end = self._held.find(_THOUGHT, max(0, len(self._held) - len(piece) - len(_THOUGHT)))
            if end < 0:
                return ""
            self.unwrapped, self._prose = True, False
            self._held = self._held[end + len(_THOUGHT) :]
        return self._opening()

    def _opening(self) -> str:
        """Nothing but whitespace came before what is held."""
        text = self._held.lstrip()
        if text.startswith("{"):
            return self._begin(text)
        if fence := _FENCE.match(text):
            self._fenced = self.unwrapped = True
            return self._begin(text[fence.end() :])
        if not text or _MAYBE_FENCE.match(text):
            self._blank = len(self._held) - len(self._held.rstrip())
            return ""
        self._prose, self._blank = True, 0
        piece, self._held = self._held, ""
        return self.feed(piece)

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
