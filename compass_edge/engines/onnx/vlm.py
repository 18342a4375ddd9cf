"""A vision-language model on ONNX Runtime: the Orienter's and the Verifier's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.constraint import Grammars
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.onnx.drafts import Draft, write
from compass_edge.engines.onnx.feature_store import FeatureStore
from compass_edge.engines.onnx.load import load
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.engines.onnx.session import Options
from compass_edge.errors import UsageError
from compass_edge.models import Cancelled, Image, OnText, Question

_NO_THINKING = {"enable_thinking": False}
_WAIT_S = 0.05


class OnnxVlm:
    """Implements VisionLanguageModel. May be asked from several threads; it answers one call after the other.

    Two roles may share one: then they share its memory too.
    """

    def __init__(
        self, model: str | Path, options: Options | None = None, *, features: FeatureStore | None = None
    ) -> None:
        """`model` is a name of the store or a folder. `features` may be shared by models with the same tower."""
        self.body: Body = load(model, "vlm", options or Options(), features)
        self._grammars = Grammars(self.body.tokenizer, self.body.decoder.numbers.vocabulary)

    @property
    def manifest(self) -> Manifest:
        return self.body.manifest

    @property
    def name(self) -> str:
        return self.body.name

    @property
    def max_batch(self) -> int:
        return self.body.options.batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> list[str]:
        """Replies under their schemas, the likeliest token each time. Empty texts if `cancelled` came true."""
        if not questions:
            return []
        if len(questions) > self.max_batch:
            raise UsageError(f"{len(questions)} questions came, and the model was opened for {self.max_batch} (batch).")
        with self._alone(cancelled) as alone:
            if alone:
                drafts = [self._draft(index, question) for index, question in enumerate(questions)]
                if self._read(questions, drafts, on_text, cancelled):
                    return ["".join(draft.text) for draft in drafts]
        return [""] * len(questions)

    def log_probabilities(self, parts: Sequence[str | Image], text: str) -> NDArray[np.float32]:
        """Of each token of `text`, were it the reply to the parts: what models that score by likelihood need."""
        tokens = self.body.tokenizer.encode(text)
        if not tokens:
            raise UsageError("The text whose likelihood is wanted must have a token at least, and an empty one came.")
        with self._alone(lambda: False):
            prompt = self.body.prompt(parts, _NO_THINKING, generation=True, begun=tokens)
            before = range(len(prompt) - len(tokens) - 1, len(prompt) - 1)
            _, outputs = self.body.read(prompt, before)
        logits = outputs["logits"].astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return logits[np.arange(len(tokens)), tokens].astype(np.float32)

    def _draft(self, index: int, question: Question) -> Draft:
        return Draft(
            index,
            self._grammars.start(question.schema),
            self.body.tokenizer.stream(),
            question.max_tokens,
            forced=self.body.options.forced,
        )

    def _read(
        self, questions: Sequence[Question], drafts: Sequence[Draft], on_text: OnText, cancelled: Cancelled
    ) -> bool:
        """Prompts one after the other, each behind what any row holds of it; then the replies together."""
        rows = [None] if len(drafts) == 1 else range(free := self.body.rows.free(len(drafts)), free + len(drafts))
        first = []
        for question, draft, row in zip(questions, drafts, rows, strict=True):
            if cancelled():
                return False
            prompt = self._prompt(question, draft)
            draft.row, outputs = self.body.read(prompt, [len(prompt) - 1], row)
            draft.position = prompt.next_position
            first.append(outputs["logits"][-1])
        return write(self.body, drafts, first, on_text, cancelled)

    def _prompt(self, question: Question, draft: Draft) -> Prompt:
        return self.body.prompt(question.parts, _NO_THINKING, generation=True, begun=draft.begin())

    @contextmanager
    def _alone(self, cancelled: Cancelled) -> Iterator[bool]:
        """Until the model is free, or nobody waits."""
        while not self.body.lock.acquire(timeout=_WAIT_S):
            if cancelled():
                yield False
                return
        try:
            yield True
        finally:
            self.body.lock.release()
