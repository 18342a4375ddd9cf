"""The text of a reply as it was told to whoever listens, over all attempts to get it."""

from __future__ import annotations

from collections.abc import Callable


class Told:
    """A listener hears each character once. A second attempt usually writes the same text again (temperature 0), and is heard
    from where the first one broke; one that differs is not heard at all: what was heard early only ever makes a guess.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._text = ""
        self._place = 0  # of the current attempt, in the text
        self._differs = False

    @property
    def text(self) -> str:
        return self._text

    def again(self) -> None:
        self._place = 0

    def piece(self, piece: str) -> None:
        known = self._text[self._place : self._place + len(piece)]
        if self._differs or piece[: len(known)] != known:
            self._differs = True
            return
        self._place += len(piece)
        if fresh := piece[len(known) :]:
            self._text += fresh
            self._say(fresh)
