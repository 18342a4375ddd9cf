"""Guidance: where to look, told to the attention itself. Which words came just before, which frame or field a token belongs to,
which earlier word the next one repeats, and which cells of which frame it is read off.

Left to the loss of its words, a decoder of this size learned in hours to tell likely stories and never to look anything up: asked to
repeat random words it got one of two hundred right, which is chance. What an attention looks at is known here, and can be taught like
any other label. Only heads that growth has added are guided (training.growth), so that nothing that was learned is in the way, and only
the loss is added: nothing of it is left in the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from training.footage import CELL, SIDE
from training.model import CELLS, Tiny

# Layers and heads.
_BEHIND = ((0, 6), (0, 7), (0, 8))  # one word before, two, three
_HEADING = ((1, 6),)
_REPEATED = ((2, 6), (3, 6), (4, 6))
_COPYING = ((3, 6), (4, 6))  # which of them say what they look at
_READ = ((2, 7), (3, 7))
_TELLING = ((3, 7),)
_LOOKS = 24  # tokens of a row whose look at the words just before is held, and at their heading
_SPAN = SIDE // CELL // CELLS  # of a map, in a cell
_SEEN = 0.04  # of a cell that a thing must fill

_FIELDS = re.compile(r'"(?P<field>start|during|candidate)": "(?P<text>[^"]*)"')
_FRAMES = {"start": 0, "during": 1, "candidate": 2}
_ENTRIES = re.compile(r'\{"name": "(?P<name>[^"]*)"')
# Words that are repeated from somewhere: which thing, which place.
REPEATED = re.compile(
    r"red|green|blue|yellow|purple|orange|white|gray|black|brown|(?:left|right)(?:most)?|middle|front|back|one|other"
)
WORD, FILLED = -1, -2  # a token that is of no frame; one that only fills a row up

Span = tuple[int, int]  # of a text: first character, and behind the last one
Numbers = tuple[int, ...]  # of things, in a map
Watched = Mapping[int, tuple[Tensor, Tensor, Tensor]]  # by layer: queries, keys, what the heads made of their looks
Seen = Mapping[tuple[int, int], Numbers]  # by frame and by number of an entry: what it is read off


@dataclass(slots=True)
class Guide:
    """Of the tokens of one row or of a whole batch, each by its place."""

    headings: list[tuple[int, int, int]] = field(default_factory=list)  # row, token, the token it belongs to
    repeats: list[tuple[int, int]] = field(default_factory=list)  # row, the token before one that was said before
    readings: list[tuple[int, int, int, Numbers]] = field(default_factory=list)  # row, token before, frame, things

    def take(self, other: Guide) -> None:
        self.headings += other.headings
        self.repeats += other.repeats
        self.readings += other.readings


def listed(thing: str) -> str:
    """As a list of objects names it: a tube by the colour of its cap."""
    words = thing.split()
    return f"{words[-2]} tube" if "tube" in words else thing


def read(reply: str) -> list[tuple[Span, int, int]]:
    """What a reply says of its frames: the words, the frame, and the number of the entry that they are of.

    Of a description what stands behind the name of a place or a thing; of a list of objects all of it.
    """
    found = []
    for one in _FIELDS.finditer(reply):
        frame, at = _FRAMES[one["field"]], one.start("text")
        for number, part in enumerate(one["text"].split("; ")):
            name, colon, told = part.partition(": ")
            if colon:
                begin = at + len(name) + len(colon)
                found.append(((begin, begin + len(told)), frame, number))
            at += len(part) + len("; ")
    found += [(one.span("name"), 0, number) for number, one in enumerate(_ENTRIES.finditer(reply))]
    return found


def guide_of(
    row: int,
    before: int,
    starts: Sequence[int],
    reply: str,
    names: Sequence[int],
    weights: Sequence[float],
    seen: Seen,
    frame: int | None,
) -> Guide:
    """Of one sample: `before` tokens of its prompt, where its reply's tokens begin, what each token of the row names (-1: nothing)
    and weighs, what is seen, and the number of its first frame, if it has frames."""
    made, read_off = Guide(), set()
    for span, number, entry in read(reply):
        inside = [at for at, start in enumerate(starts) if span[0] - 1 <= start < span[1] - 1]
        read_off.update(inside)
        numbers = seen.get((number, entry), ())
        if frame is not None and numbers:
            made.readings += [(row, before + at - 1, frame + number, numbers) for at in inside]
    known = set(names[:before])
    for at, name in enumerate(names[before : before + len(starts)]):
        if name >= 0 and at not in read_off and weights[before + at] > 0 and name in known:
            made.repeats.append((row, before + at - 1))
        known.add(name)
    return made


def loss_of_guide(
    watched: Watched,
    guide: Guide,
    names: Tensor,
    pictures: Tensor,
    maps: NDArray[np.uint8] | None,
    chance: torch.Generator,
) -> dict[str, Tensor]:
    """By what is looked at. `names` [B, T]: what a token names, or -1; `pictures` [B, T]: the number of the frame whose cell it is,
    WORD or FILLED; `maps` [frames, cells, cells] of things."""
    found: dict[str, list[Tensor]] = {}
    words = _behind_words(pictures)
    if len(words):
        row, at = words[torch.randint(len(words), (len(pictures) * _LOOKS,), generator=chance)].unbind(1)
        found["behind"] = [
            F.cross_entropy(_scores(watched, head, row, at), at - back) for back, head in enumerate(_BEHIND, start=1)
        ]
    if guide.headings:
        known = torch.tensor(guide.headings)
        row, at, of = known[torch.randint(len(known), (len(pictures) * _LOOKS,), generator=chance)].unbind(1)
        found["heading"] = [F.cross_entropy(_scores(watched, head, row, at), of) for head in _HEADING]
    if guide.repeats:
        row, at = torch.tensor(guide.repeats).unbind(1)
        same = names[row] == names[row, at + 1][:, None]
        found["repeated"] = [_misses(_scores(watched, head, row, at), same).mean() for head in _REPEATED]
    if guide.readings and maps is not None:
        wanted, row, at = _cells_of(guide, pictures, maps)
        if len(row):
            found["read"] = [_misses(_scores(watched, head, row, at), wanted).mean() for head in _READ]
    return {name: torch.stack(losses).mean() for name, losses in found.items()}


def shares_of(
    watched: Watched, guide: Guide, names: Tensor, pictures: Tensor, maps: NDArray[np.uint8] | None
) -> dict[str, list[float]]:
    """How much of each look of the last layers' heads falls on what it should: on the word that is repeated, on the cells."""
    found = {}
    if guide.repeats:
        row, at = torch.tensor(guide.repeats).unbind(1)
        same = names[row] == names[row, at + 1][:, None]
        found["repeated, looked at"] = (-_misses(_scores(watched, _REPEATED[-1], row, at), same)).exp().tolist()
    if guide.readings and maps is not None:
        wanted, row, at = _cells_of(guide, pictures, maps)
        if len(row):
            found["read, looked at"] = (-_misses(_scores(watched, _READ[-1], row, at), wanted)).exp().tolist()
    return found


def loss_of_words(model: Tiny, guide: Guide, ids: Tensor) -> dict[str, Tensor]:
    """How far heads that look at the word to repeat, or at the cells to read, are from saying what is there. Who looks at the right
    word and says another one has learned half of it."""
    looks = {
        "said": (_COPYING, guide.repeats),
        "told": (_TELLING, [(row, at) for row, at, *_ in guide.readings]),
    }
    found = {}
    for name, (heads, places) in looks.items():
        if places:
            row, at = torch.tensor(places).unbind(1)
            words = [model.said_by(layer, head, model.watched[layer][2][row, head, at]) for layer, head in heads]
            found[name] = torch.stack([F.cross_entropy(one.float(), ids[row, at + 1]) for one in words]).mean()
    return found


def cells_of(seen: NDArray[np.uint8], numbers: Numbers) -> NDArray[np.bool_]:
    """[cells]: which of a picture's cells show one of these things; `seen` is its map."""
    share = np.isin(seen, numbers).reshape(CELLS, _SPAN, CELLS, _SPAN).mean(axis=(1, 3))
    found: NDArray[np.bool_] = (share > _SEEN).flatten()
    return found


def _cells_of(guide: Guide, pictures: Tensor, maps: NDArray[np.uint8]) -> tuple[Tensor, Tensor, Tensor]:
    """Of all readings of something that is seen: the tokens to look at [looks, T], and who looks."""
    kept: dict[tuple[int, Numbers], NDArray[np.bool_]] = {}
    looks, wanted = [], []
    for row, at, frame, numbers in guide.readings:
        if (frame, numbers) not in kept:
            kept[frame, numbers] = cells_of(maps[frame], numbers)
        if kept[frame, numbers].any():
            looks.append((row, at, frame))
            wanted.append(kept[frame, numbers])
    if not looks:
        return torch.zeros(0, 0, dtype=torch.bool), *torch.zeros(2, 0, dtype=torch.long)
    row, at, frame = torch.tensor(looks).unbind(1)
    here = pictures[row] == frame[:, None]
    found = torch.zeros_like(here)
    found[here] = torch.from_numpy(np.stack(wanted)).flatten()
    return found, row, at


def _behind_words(pictures: Tensor) -> Tensor:
    """[tokens, 2]: rows and places of all that have only words just before them."""
    seen, span = pictures != WORD, len(_BEHIND) + 1
    if pictures.shape[1] < span:
        return torch.zeros(0, 2, dtype=torch.long)
    return (~seen.unfold(1, span, 1).any(-1)).nonzero() + torch.tensor([0, span - 1])


def _misses(scores: Tensor, wanted: Tensor) -> Tensor:
    """How little of each look falls on any of the tokens that are wanted: minus the logarithm of its share."""
    shares = scores.log_softmax(-1)
    return -torch.logsumexp(shares.masked_fill(~wanted, -1e9), -1).clamp(min=-50.0)


def _scores(watched: Watched, which: tuple[int, int], row: Tensor, at: Tensor) -> Tensor:
    """[looks, T] of one head."""
    (query, key, _), head = watched[which[0]], which[1]
    every = query[:, head] @ key[:, head // (query.shape[1] // key.shape[1])].transpose(1, 2)
    later = torch.arange(key.shape[2])[None] > at[:, None]
    return (every[row, at].float() * query.shape[-1] ** -0.5).masked_fill(later, -1e9)
