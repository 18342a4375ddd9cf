"""A batch: samples as the numbers a model is trained on, in exactly the tokens that the engine would read and write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.export.robometer import PROGRESS_TOKEN
from compass_edge.models import Question
from compass_edge.prms import robometer
from training.films import Sample
from training.guidance import FILLED, REPEATED, WORD, Guide, guide_of
from training.model import VISUAL, Tiny
from training.pointing import Pointed

_FORCED = re.compile(r'(?:\{|, )"[a-z_]+": (?:"|\[)?')
_WEIGHTS = {'"change"': 2.0, '"verdict"': 4.0, '"grounded"': 2.0}  # of a field's value, by its name
# Which thing and which place: the words that decide. All others a grammar would guess.
_TELLING = re.compile(
    r"red|green|blue|yellow|purple|orange|white|(?:left|right)(?:most)?|middle|front|back|[0-9]|Press|Move|Lift|Tap|Wait until the lamp"
)
_TELLING_WEIGHT, _PLAIN_WEIGHT = 2.0, 0.5
# What a frame shows stands behind a colon; the names before it are copied from the question.
_SEEN, _SEEN_WEIGHT = re.compile(r'(?<=[a-z]): ([^;,"]+)'), 3.0


class Scribe:
    """Texts to tokens: prompts with their pictures, replies with what each of their tokens weighs."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer(folder)
        name = self.tokenizer.id_of
        self.start, self.end, self.progress = name("<|im_start|>"), name("<|im_end|>"), name(PROGRESS_TOKEN)
        self.picture = [name("<|vision_start|>"), *[name("<|image_pad|>")] * VISUAL, name("<|vision_end|>")]
        self._closing = [self.end, *self.tokenizer.encode("\n"), self.start, *self.tokenizer.encode("assistant\n")]
        self._glue = {
            token for token in range(self.tokenizer.size)
            if token not in self.tokenizer.added and _FORCED.fullmatch(self.tokenizer.decode([token]))
        }  # fmt: skip
        words = [self.tokenizer.decode([token]).strip() for token in range(self.tokenizer.size)]
        known = sorted({word for word in words if REPEATED.fullmatch(word)})
        self._names = [known.index(word) if word in known else -1 for word in words]
        self._asides = [
            0.0 if token in self.tokenizer.added else max(_PLAIN_WEIGHT, _telling(self.tokenizer.decode([token])))
            for token in range(self.tokenizer.size)
        ]

    def asides(self, prompt: Sequence[int]) -> list[float]:
        """What each token of a prompt weighs as a prediction: most of its words are copied from words before them."""
        return [self._asides[token] for token in prompt]

    def names(self, ids: Sequence[int]) -> list[int]:
        """Which word each token is, of those that are repeated; the same with and without the space before it."""
        return [self._names[token] for token in ids]

    def headings(self, row: int, before: int, ids: Sequence[int]) -> list[tuple[int, int, int]]:
        """Cells belong to the words before their picture, words of a reply to the name of their field. As a guide has them."""
        found, last, here = [], 0, False
        for at, token in enumerate(ids):
            if at >= before:
                last = at if token in self._glue else last
                found.append((row, at, last))
            elif token == self.picture[0]:
                last, here = at - 1, True
            elif token == self.picture[1] and here:
                found.append((row, at, last))
        return found

    def prompt(self, question: Question, *, pictures: bool) -> list[int]:
        ids, text = [self.start], "user\n"
        for part in question.parts:
            if isinstance(part, str):
                text += part
            elif pictures:
                ids += self.tokenizer.encode(text) + self.picture
                text = ""
        return ids + self.tokenizer.encode(text) + self._closing

    def clip(self, sentence: str, frames: int) -> list[int]:
        text = "user\n" + robometer._PROMPT.format(task=sentence)
        return [self.start, *self.tokenizer.encode(text), *[*self.picture, self.progress] * frames]

    def starts(self, reply: Sequence[int]) -> list[int]:
        """Where in a text of plain letters each of its tokens begins."""
        lengths = [len(self.tokenizer.decode([token])) for token in reply]
        return [sum(lengths[:at]) for at in range(len(lengths))]

    def reply(self, text: str, given: int) -> tuple[list[int], list[float]]:
        ids = self.tokenizer.encode(text)
        weights, at, weight = [], 0, _PLAIN_WEIGHT
        seen = {place for found in _SEEN.finditer(text) for place in range(*found.span(1))}
        for token in ids:
            piece = self.tokenizer.decode([token])
            if token in self._glue:
                weight = next((value for name, value in _WEIGHTS.items() if name in piece), _PLAIN_WEIGHT)
            shown = _SEEN_WEIGHT if at + len(piece) - 1 in seen else max(weight, _telling(piece))
            weights.append(0.0 if at < given else 0.1 if token in self._glue and "{" not in piece else shown)
            at += len(piece)
        return ([*ids, self.end], [*weights, 0.2]) if text.endswith("}") else (ids, weights)


def _telling(piece: str) -> float:
    return _TELLING_WEIGHT if _TELLING.fullmatch(piece.strip()) else 0.0


@dataclass(slots=True)
class Batch:
    ids: Tensor  # [B, T]
    positions: Tensor  # [3, B, T]
    weights: Tensor  # [B, T]: of each token of a reply as a prediction
    asides: Tensor  # [B, T]: of each token of a prompt
    frames: list[tuple[int, int]]
    pointed: list[Pointed]  # of each frame
    progress: Tensor  # of all clips' frames in a row
    counts: Tensor
    nearness: Tensor  # [frames of clips, columns]
    names: Tensor  # [B, T]: which of the words that are repeated a token is, or -1
    guide: Guide  # where to look


def made(samples: Sequence[Sample], scribe: Scribe, model: Tiny) -> Batch:
    rows: list[tuple[list[int], list[float], list[float]]] = []
    guide, before = Guide(), 0
    for sample in samples:
        if sample.question is None:
            ids = scribe.clip(sample.sentence, len(sample.frames))
            rows.append((ids, [], []))
        else:
            prompt = scribe.prompt(sample.question, pictures=bool(sample.frames))
            reply, weights = scribe.reply(sample.reply, sample.given)
            ids, weighed = prompt + reply, [0.0] * len(prompt) + weights
            first = before if sample.frames else None
            guide.take(
                guide_of(
                    len(rows), len(prompt), scribe.starts(reply), sample.reply, scribe.names(ids), weighed,
                    sample.seen, first,
                )
            )  # fmt: skip
            guide.headings += scribe.headings(len(rows), len(prompt), ids)
            rows.append((ids, weighed, scribe.asides(prompt)))
        before += len(sample.frames)
    length = max(len(ids) for ids, *_ in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    names = torch.full_like(ids, -1)
    weights, asides = torch.zeros(2, len(rows), length)
    positions = torch.zeros(3, len(rows), length, dtype=torch.long)
    for at, (row, weight, aside) in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
        names[at, : len(row)] = torch.tensor(scribe.names(row))
        weights[at, : len(weight)] = torch.tensor(weight)
        asides[at, : len(aside)] = torch.tensor(aside)
        positions[:, at, : len(row)] = torch.from_numpy(model.positions(row))
    return Batch(
        ids, positions, weights, asides, [frame for sample in samples for frame in sample.frames],
        [sample.pointed for sample in samples for _ in sample.frames],
        torch.from_numpy(np.concatenate([sample.progress for sample in samples])),
        torch.from_numpy(np.concatenate([sample.counts for sample in samples])),
        torch.from_numpy(np.concatenate([sample.nearness for sample in samples])),
        names, guide,
    )  # fmt: skip


def pictures_of(batch: Batch, image: int) -> Tensor:
    """Of each token the number of the frame that it is a cell of, or what else it is."""
    here = batch.ids == image
    found = torch.where(here, (here.flatten().cumsum(0).view_as(batch.ids) - 1) // VISUAL, WORD)
    found[:, 1:][batch.positions[0, :, 1:] == 0] = FILLED
    return found
