"""Replies while they are being written, several at once, each under its schema.

A pass reads the token that was chosen and all that the schema forces behind it, so that only what the model decides costs
a pass. Rows that read one token each go through the decoder together; more than one token goes row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.constraint import Constraint
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.text_stream import TextStream
from compass_edge.models import Cancelled, OnText


class Draft:
    """One reply. `pending` are tokens that are written and not read yet."""

    def __init__(self, index: int, constraint: Constraint, stream: TextStream, most: int, *, forced: bool) -> None:
        self.index = index
        self.row, self.position = -1, 0
        self.text: list[str] = []
        self.pending: list[int] = []
        self.tokens = self.forced_tokens = 0
        self._constraint, self._stream, self._most, self._forced = constraint, stream, most, forced

    @property
    def over(self) -> bool:
        return self._constraint.over or self.tokens >= self._most

    def begin(self) -> list[int]:
        """What every reply begins with."""
        return self._force()

    def choose(self, logits: NDArray[np.float32]) -> None:
        """The likeliest token that may come next, and what must follow it."""
        self._constraint.mask(logits)
        token = int(logits.argmax())
        self._write([token])
        self.pending = [token]
        if not self.over:
            self.pending += self._force()

    def _force(self) -> list[int]:
        tokens = self._constraint.forced()[: self._most - self.tokens] if self._forced else []
        self._write(tokens)
        self.forced_tokens += len(tokens)
        return tokens

    def _write(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._constraint.take(token)
            self.tokens += 1
            self.text.append(self._stream.feed(token))

    def told(self) -> Iterator[str]:
        """The pieces of text that nobody has been told yet."""
        if self.over:
            self.text.append(self._stream.end())
        piece = "".join(self.text[self._told :])
        self._told = len(self.text)
        if piece:
            yield piece

    _told = 0


def write(
    body: Body, drafts: Sequence[Draft], first: Sequence[NDArray[Any]], on_text: OnText, cancelled: Cancelled
) -> bool:
    """To their ends; False if nobody waits any more. `first` are the logits behind each prompt."""
    live = list(drafts)
    logits: dict[int, NDArray[np.float32]] = {draft.index: values for draft, values in zip(drafts, first, strict=True)}
    while live:
        if cancelled():
            return False
        for draft in live:
            if not draft.over:
                draft.choose(logits[draft.index])
            for piece in draft.told():
                on_text(draft.index, piece)
        live = [draft for draft in live if not draft.over and _fits(body, draft)]
        logits = {}
        for group in _groups(live):
            made = body.advance(group[0].row, [draft.pending for draft in group], [draft.position for draft in group])[
                "logits"
            ]
            for at, draft in enumerate(group):
                draft.position += len(draft.pending)
                logits[draft.index] = made[at, 0].copy() if len(live) > 1 else made[at, 0]
    return True


def _fits(body: Body, draft: Draft) -> bool:
    """A reply that the context has no room for ends where it is, as at its longest."""
    return body.rows.length(draft.row) + len(draft.pending) < body.options.context


def _groups(drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
    """Neighbouring rows with one token each; all others alone."""
    group: list[Draft] = []
    for draft in sorted(drafts, key=lambda draft: draft.row):
        joins = group and len(draft.pending) == len(group[-1].pending) == 1 and draft.row == group[-1].row + 1
        if not joins and group:
            yield group
            group = []
        group.append(draft)
    if group:
        yield group
