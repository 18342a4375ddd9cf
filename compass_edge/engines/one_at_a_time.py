"""A library in this process that answers one question at a time, whoever asks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from compass_edge.models import Cancelled, OnText, Question


class OneAtATime(ABC):
    """Any thread may ask. Who waits for his turn and is not wanted any more gets no answer."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    @property
    def max_batch(self) -> int:
        return 1

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        texts = []
        for index, question in enumerate(questions):
            with self._turn:
                texts.append("" if cancelled() else self._answer(index, question, on_text, cancelled))
        return texts

    @abstractmethod
    def _answer(self, index: int, question: Question, on_text: OnText, cancelled: Cancelled) -> str: ...
