"""Models on a cassette: recorded while they answer, and played back without any model.

A recorded run can be replayed on a machine that has no weights, and a bug report can bring its models along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from compass_edge.errors import CompassError
from compass_edge.loop.call import Models
from compass_edge.loop.cassette import Cassette, Kind
from compass_edge.loop.events import Role
from compass_edge.models import Cancelled, Clip, OnText, ProgressModel, Question, VisionLanguageModel

_PIECES = 4  # that a reply is played back in


def recorded(cassette: Cassette, models: Models) -> Models:
    """The models, asked only for what is not on the cassette yet."""
    return Models(
        AskRecorder(cassette, models.orienter),
        ScoreRecorder(cassette, models.prm),
        AskRecorder(cassette, models.verifier),
    )


def played(cassette: Cassette, names: dict[Role, str]) -> Models:
    """Stand in for the models of these names."""
    return Models(
        AskPlayer(cassette, names["orienter"]),
        ScorePlayer(cassette, names["prm"]),
        AskPlayer(cassette, names["verifier"]),
    )


class ScoreRecorder:
    """The model, asked only for what is not on the cassette yet."""

    def __init__(self, cassette: Cassette, model: ProgressModel) -> None:
        self._cassette, self._model = cassette, model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def max_batch(self) -> int:
        return self._model.max_batch

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        keys = [clip.digest(self.name) for clip in clips]
        answers = _known(self._cassette, "score", keys)
        missing = _missing(keys, answers)
        if missing:
            replies = self._model.score([clips[at] for at in missing])
            _must_match(self.name, missing, replies)
            for at, reply in zip(missing, replies, strict=True):
                sentence = clips[at].sentence
                answers[keys[at]] = self._cassette.keep("score", keys[at], self.name, sentence, float(reply))
        return [float(answers[key]) for key in keys]


class AskRecorder:
    """The model, asked only for what is not on the cassette yet. A reply that was cancelled is not kept."""

    def __init__(self, cassette: Cassette, model: VisionLanguageModel) -> None:
        self._cassette, self._model = cassette, model

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def max_batch(self) -> int:
        return self._model.max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        keys = [question.digest(self.name) for question in questions]
        answers = _known(self._cassette, "ask", keys)
        missing = _missing(keys, answers)
        if missing:
            stopped = False

            def asked() -> bool:
                nonlocal stopped
                stopped = stopped or cancelled()
                return stopped

            replies = self._model.ask(
                [questions[at] for at in missing], lambda place, piece: on_text(missing[place], piece), asked
            )
            _must_match(self.name, missing, replies)
            for at, reply in zip(missing, replies, strict=True):
                # An engine that was told to stop may have stopped in the middle of a word.
                text = _text(questions[at])
                answers[keys[at]] = reply if stopped else self._cassette.keep("ask", keys[at], self.name, text, reply)
        for at, key in enumerate(keys):
            if at not in missing:
                _stream(at, str(answers[key]), on_text, cancelled)
        return [str(answers[key]) for key in keys]


class ScorePlayer:
    """Stands in for the model of that name. An unknown call fails its whole batch, hence batches of one."""

    def __init__(self, cassette: Cassette, name: str, max_batch: int = 1) -> None:
        cassette.must_exist()
        self._cassette, self.name, self.max_batch = cassette, name, max_batch

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        need = self._cassette.need
        return [float(need("score", clip.digest(self.name), self.name, clip.sentence)) for clip in clips]


class AskPlayer:
    """Stands in for the model of that name. An unknown call fails its whole batch, hence batches of one."""

    def __init__(self, cassette: Cassette, name: str, max_batch: int = 1) -> None:
        cassette.must_exist()
        self._cassette, self.name, self.max_batch = cassette, name, max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        need = self._cassette.need
        replies = [str(need("ask", asked.digest(self.name), self.name, _text(asked))) for asked in questions]
        for at, reply in enumerate(replies):
            _stream(at, reply, on_text, cancelled)
        return replies


def _known(cassette: Cassette, kind: Kind, keys: Sequence[str]) -> dict[str, float | str]:
    found = {key: cassette.find(kind, key) for key in keys}
    return {key: reply for key, reply in found.items() if reply is not None}


def _missing(keys: Sequence[str], known: Collection[str]) -> list[int]:
    """Where in the batch the calls are that must be made: each unknown one once."""
    return [at for at, key in enumerate(keys) if key not in known and key not in keys[:at]]


def _must_match(name: str, asked: Sequence[object], replies: Sequence[object]) -> None:
    if len(asked) != len(replies):
        raise CompassError(
            f"The model '{name}' gave {len(replies)} replies to {len(asked)} calls, and one each was expected."
        )


def _stream(at: int, reply: str, on_text: OnText, cancelled: Cancelled) -> None:
    size = -(-len(reply) // _PIECES)
    for start in range(0, len(reply), max(1, size)):
        if cancelled():
            return
        on_text(at, reply[start : start + size])


def _text(question: Question) -> str:
    return " ".join(part for part in question.parts if isinstance(part, str))
