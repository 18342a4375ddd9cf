"""Models to record: they count what they are asked, and answer as they are told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from compass_edge.models import Cancelled, Clip, Image, OnText, Question


class Scorer:
    """A progress model that counts the clips it is asked for."""

    name, max_batch = "scorer", 7

    def __init__(self, replies: dict[Clip, float] | None = None) -> None:
        self.asked: list[Clip] = []
        self.replies = replies

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        self.asked += clips
        return [len(clip.sentence) / 7 if self.replies is None else self.replies[clip] for clip in clips]


class Talker:
    """A language model that answers with the text parts, letter by letter."""

    name, max_batch = "talker", 3

    def __init__(self, replies: dict[Question, str] | None = None) -> None:
        self.asked: list[Question] = []
        self.replies = replies

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        self.asked += questions
        replies = []
        for at, question in enumerate(questions):
            whole = str(question.parts) if self.replies is None else self.replies[question]
            said = ""
            for letter in whole:
                if cancelled():
                    break
                on_text(at, letter)
                said += letter
            replies.append(said)
        return replies


class Heard:
    """What on_text got, by place in the batch."""

    def __init__(self) -> None:
        self.pieces: dict[int, list[str]] = {}

    def __call__(self, at: int, piece: str) -> None:
        self.pieces.setdefault(at, []).append(piece)

    def texts(self, size: int) -> list[str]:
        return ["".join(self.pieces.get(at, [])) for at in range(size)]


def never() -> bool:
    return False


def clip(sentence: str, *frames: str) -> Clip:
    return Clip(sentence, tuple(map(Image, frames)))


def question(text: str, *frames: str) -> Question:
    return Question((text, *map(Image, frames)), {})


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
