"""Guidance: where to look, told to the attention itself. Which earlier word a place's name is copied from, and which cells of which
frame a word is read off.

Left to the loss of its words, a decoder of this size learned in hours to tell likely stories and never to look anything up: asked to
repeat random words it got one of two hundred right, which is chance. What an attention looks at is known here, and can be taught like any other label. Only the
loss is added: nothing of it is left in the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

# Layers and their heads: the words just before, the word that is copied, the cells that are read.
_BEHIND, _BEHIND_HEADS = 0, (0, 1, 2)
_COPIED, _COPIED_HEAD = 2, 3
_READ, _READ_HEAD = 3, 0
LAYERS = (_BEHIND, _COPIED, _READ)
_LOOKS = 24  # tokens of a row whose look at the words just before is held

_TOLD = 2  # tokens of what is read off, at most: a colour and a kind

_MOVE = re.compile(r"Move the (?P<thing>[a-z ]+?) from the (?P<place>[a-z ]+?) (?:onto|into) ")
_FIELDS = re.compile(r'"(?P<field>start|during|candidate)": "(?P<text>[^"]*)"')
_FRAMES = {"start": 0, "during": 1, "candidate": 2}
SUBJECT, ORIGIN, GOAL = range(3)
WORD, FILLED = -1, -2  # a token that is of no frame; one that only fills a row up

Span = tuple[int, int]  # of a text: first character, and behind the last one


@dataclass(slots=True)
class Guide:
    """Of the tokens of one row or of a whole batch, each by its place."""

    copies: list[tuple[int, int, int]] = field(default_factory=list)  # row, the token before a copied one, its source
    readings: list[tuple[int, int, int, int]] = field(default_factory=list)  # row, token before, frame, which thing


def listed(thing: str) -> str:
    """As a list of objects names it: a tube by the colour of its cap."""
    words = thing.split()
    return f"{words[-2]} tube" if "tube" in words else thing


def copied(reply: str) -> list[tuple[Span, Span]]:
    """Names of places in a plan, and where the list of objects before it names them."""
    found = []
    for move in _MOVE.finditer(reply):
        thing = listed(move["thing"])
        at = reply.find(f'"{thing} at {move["place"]}"')
        if 0 <= at < move.start():
            begin = at + len(f'"{thing} at ')
            found.append((move.span("place"), (begin, begin + len(move["place"]))))
    return found


def read(reply: str) -> list[tuple[Span, int, int]]:
    """What a Verifier's reply says of each frame: the words, the frame, and which of the step's things they are read off."""
    found = []
    for one in _FIELDS.finditer(reply):
        frame, at = _FRAMES[one["field"]], one.start("text")
        parts = one["text"].split("; ")
        for number, part in enumerate(parts):
            name, colon, told = part.partition(": ")
            which = SUBJECT if len(parts) == 1 else (ORIGIN, GOAL, None)[min(number, 2)]
            if colon and which is not None and name != "hand":
                begin = at + len(name) + len(colon)
                found.append(((begin, begin + len(told)), frame, which))
            at += len(part) + len("; ")
    return found


def guide_of(row: int, before: int, starts: list[int], reply: str, frame: int | None) -> Guide:
    """Of one sample: `before` tokens of its prompt, `starts` of its reply's tokens, and its first frame, if it has frames."""
    made = Guide()

    def inside(span: Span) -> list[int]:
        return [at for at, start in enumerate(starts) if span[0] - 1 <= start < span[1] - 1]

    for target, source in copied(reply):
        pairs = zip(inside(target), inside(source), strict=False)
        made.copies += [(row, before + to - 1, before + of) for to, of in pairs]
    if frame is not None:
        made.readings = [
            (row, before + at - 1, frame + number, which)
            for span, number, which in read(reply)
            for at in inside(span)[:_TOLD]
        ]
    return made


def loss_of_guide(
    watched: dict[int, tuple[Tensor, Tensor]],
    guide: Guide,
    pictures: Tensor,
    cells: NDArray[np.bool_] | None,
    chance: torch.Generator,
) -> Tensor:
    """`pictures` [B, T]: the number of the frame whose token it is, WORD or FILLED; `cells` [frames, VISUAL, 3]."""
    total = torch.zeros(())
    words = _behind_words(pictures)
    if len(words):
        row, at = words[torch.randint(len(words), (len(pictures) * _LOOKS,), generator=chance)].unbind(1)
        for back, head in enumerate(_BEHIND_HEADS, start=1):
            total = total + F.cross_entropy(_scores(watched[_BEHIND], head, row, at), at - back)
    if guide.copies:
        row, at, source = torch.tensor(guide.copies).unbind(1)
        total = total + F.cross_entropy(_scores(watched[_COPIED], _COPIED_HEAD, row, at), source)
    if guide.readings and cells is not None:
        total = total + _reading(watched[_READ], guide, pictures, cells)
    return total


def _behind_words(pictures: Tensor) -> Tensor:
    """[tokens, 2]: rows and places of all that have only words just before them."""
    seen, span = pictures != WORD, len(_BEHIND_HEADS) + 1
    if pictures.shape[1] < span:
        return torch.zeros(0, 2, dtype=torch.long)
    return (~seen.unfold(1, span, 1).any(-1)).nonzero() + torch.tensor([0, span - 1])


def _reading(keys: tuple[Tensor, Tensor], guide: Guide, pictures: Tensor, cells: NDArray[np.bool_]) -> Tensor:
    """How much of a look falls on the cells that show the thing, in the frame that is told of."""
    seen = [one for one in guide.readings if cells[one[2], :, one[3]].any()]
    if not seen:
        return torch.zeros(())
    row, at, frame, which = torch.tensor(seen).unbind(1)
    shares = _scores(keys, _READ_HEAD, row, at).log_softmax(-1)
    here = pictures[row] == frame[:, None]
    wanted = torch.zeros_like(here)
    wanted[here] = torch.from_numpy(cells)[frame, :, which].flatten()
    return -torch.logsumexp(shares.masked_fill(~wanted, -1e9), -1).mean()


def _scores(keys: tuple[Tensor, Tensor], head: int, row: Tensor, at: Tensor) -> Tensor:
    """[looks, T] of one head."""
    query, key = keys
    several = query.shape[1] // key.shape[1]
    scores = torch.einsum("md,mtd->mt", query[row, head, at].float(), key[:, head // several][row].float())
    later = torch.arange(key.shape[2])[None] > at[:, None]
    return (scores * query.shape[-1] ** -0.5).masked_fill(later, -1e9)
