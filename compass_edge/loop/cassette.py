"""The cassette: model calls, kept in a file under the hash of their input and played back without any model.

A recorded run can be replayed on a machine that has no weights, and a bug report can bring its models along. It works
because models are functions of their input (compass_edge/models.py); where one is not, the cassette says so.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Literal

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.models import Cancelled, Clip, OnText, ProgressModel, Question, VisionLanguageModel

Kind = Literal["score", "ask"]
_START = b'{"key": "'
_EXCERPT = 60  # characters from either end
_PIECES = 4  # that a reply is played back in


class Cassette:
    """The calls of one file, one JSON line each. All methods may be called from any thread.

    A full disk stops the recording and never a model call: `failure` says why.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] | None) -> None:
        """Use `open`."""
        self.path, self.note, self.failure = path, "", ""
        self.conflicts = 0  # calls that were answered twice, and differently: the first answer is kept
        self._warn, self._lock = warn, threading.RLock()
        self._replies: dict[tuple[str, str], float | str] = {}  # by kind and key
        self._models: set[tuple[str, str]] = set()  # kind and name
        self._end = self._size = 0  # of the whole lines, and of the file as it was read
        self._file: FileIO | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, warn: Callable[[str], None] | None = None) -> Cassette:
        """What the file holds so far; nothing if there is none yet. Only recording writes to it."""
        cassette = cls(Path(path), warn)
        try:
            if cassette.path.exists() and not cassette.path.is_file():  # a named pipe would block
                raise UsageError(f"The cassette '{path}' is not a regular file. Name one that is.")
            data = cassette.path.read_bytes()
        except FileNotFoundError:
            data = b""
        except (OSError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"The cassette '{path}' cannot be read: {error}.") from error
        cassette._load(data)
        return cassette

    def recorder_score(self, model: ProgressModel) -> ProgressModel:
        """The model, asked only for what is not on the cassette yet."""
        return _ScoreRecorder(self, model)

    def recorder_ask(self, model: VisionLanguageModel) -> VisionLanguageModel:
        """The model, asked only for what is not on the cassette yet. A reply that was cancelled is not kept."""
        return _AskRecorder(self, model)

    def player_score(self, name: str, max_batch: int = 1) -> ProgressModel:
        """Stands in for the model of that name. An unknown call fails its whole batch, hence batches of one."""
        self._must_exist()
        return _ScorePlayer(self, name, max_batch)

    def player_ask(self, name: str, max_batch: int = 1) -> VisionLanguageModel:
        """Stands in for the model of that name. An unknown call fails its whole batch, hence batches of one."""
        self._must_exist()
        return _AskPlayer(self, name, max_batch)

    def find(self, kind: Kind, key: str) -> float | str | None:
        with self._lock:
            return self._replies.get((kind, key))

    def need(self, kind: Kind, key: str, model: str, text: str) -> float | str:
        """The reply, or a sentence that says which call is not on the cassette."""
        reply = self.find(kind, key)
        if reply is None:
            with self._lock:
                known = sorted(name for asked, name in self._models if asked == kind)
            others = "" if model in known else f" Its {kind} calls are of {', '.join(map(repr, known)) or 'no model'}."
            raise CompassError(
                f"The cassette '{self.path}' has no {kind} call of the model '{model}' about '{_excerpt(text)}' with these "
                f"frames.{others} Replay with the frames and settings of the recording, or record this call too."
            )
        return reply

    def keep(self, kind: Kind, key: str, model: str, text: str, reply: float | str) -> float | str:
        """Records a call. Gives the reply that counts: the first one, should two threads have got different ones."""
        with self._lock:
            first = self._replies.get((kind, key))
            if first is None:
                self._replies[kind, key] = reply
                self._models.add((kind, model))
                excerpt = {"sentence" if kind == "score" else "prompt": _excerpt(text)}
                self._write({"key": key, "model": model, "kind": kind, "reply": reply, **excerpt})
                return reply
            if _differ(first, reply):
                self.conflicts += 1
                self._say(
                    f"The model '{model}' answered one {kind} call about '{_excerpt(text)}' in two ways: it is not a function "
                    "of its input. The first answer is kept; set its temperature to 0."
                )
            return first

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Cassette:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self, data: bytes) -> None:
        *whole, torn = data.split(b"\n")
        lines: dict[tuple[str, str], int] = {}
        for number, line in enumerate(whole, 1):
            kind, key, model, reply = self._parsed(number, line)
            first = self._replies.setdefault((kind, key), reply)
            if _differ(first, reply):
                raise IntegrityError(
                    f"Lines {lines[kind, key]} and {number} of the cassette '{self.path}' answer one {kind} call of "
                    f"'{model}' in two ways: the model is not a function of its input. Record again at temperature 0, or "
                    "remove one line."
                )
            lines.setdefault((kind, key), number)
            self._models.add((kind, model))
        self._size, self._end = len(data), len(data) - len(torn)
        if torn:
            if not (torn.startswith(_START) or _START.startswith(torn.rstrip(b"\0"))):
                raise self._foreign(len(whole) + 1, f"it begins with {torn[:24]!r}")
            self.note = f"The last line of the cassette '{self.path}' is cut off and was left out."

    def _parsed(self, number: int, line: bytes) -> tuple[str, str, str, float | str]:
        try:
            values = json.loads(line)
            kind, key, model, reply = (values[name] for name in ("kind", "key", "model", "reply"))
            if type(reply) is int:  # as a person would write it
                reply = float(reply)
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            raise self._foreign(number, repr(error)) from error
        fits = (kind == "score" and isinstance(reply, float)) or (kind == "ask" and isinstance(reply, str))
        if not (fits and isinstance(key, str) and isinstance(model, str)):
            raise self._foreign(number, f"kind {kind!r}, reply {reply!r}")
        return kind, key, model, reply

    def _foreign(self, number: int, found: str) -> IntegrityError:
        return IntegrityError(
            f"Line {number} of the cassette '{self.path}' is not a recorded model call ({found}). Name another file, or "
            "remove the line."
        )

    def _must_exist(self) -> None:
        if not (self._replies or self.path.exists()):
            raise UsageError(f"There is no cassette '{self.path}' to play. Record one first, or correct the path.")

    def _write(self, values: dict[str, Any]) -> None:
        if self.failure:
            return
        line = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            if self._file is None:
                self._file = self.path.open("ab", buffering=0)
                if self._end < self._size == self.path.stat().st_size:  # nobody else has cut the torn line off
                    self._file.truncate(self._end)
                self._end = self._size
            if self._file.write(line) != len(line):
                raise OSError("no space left for a whole line")
        except OSError as error:  # a line that was cut off is left out by the next reader
            self.failure = (
                f"Recording to the cassette '{self.path}' has stopped: {error.strerror or error}. Model calls go on."
            )
            self._say(self.failure)

    def _say(self, text: str) -> None:
        if self._warn is not None:
            self._warn(text)


class _ScoreRecorder:
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
        missing = _missing(self._cassette, "score", keys)
        if missing:
            replies = self._model.score([clips[at] for at in missing])
            _must_match(self.name, missing, replies)
            for at, reply in zip(missing, replies, strict=True):
                self._cassette.keep("score", keys[at], self.name, clips[at].sentence, float(reply))
        return _ScorePlayer(self._cassette, self.name, self.max_batch).score(clips)


class _AskRecorder:
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
        missing = _missing(self._cassette, "ask", keys)
        answers: dict[str, str] = {}
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
                kept = reply if stopped else self._cassette.keep("ask", keys[at], self.name, text, reply)
                answers[keys[at]] = str(kept)
        for at, key in enumerate(keys):
            if at not in missing:
                answers.setdefault(key, str(self._cassette.find("ask", key)))
                _stream(at, answers[key], on_text, cancelled)
        return [answers[key] for key in keys]


class _ScorePlayer:
    def __init__(self, cassette: Cassette, name: str, max_batch: int) -> None:
        self._cassette, self.name, self.max_batch = cassette, name, max_batch

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        need = self._cassette.need
        return [float(need("score", clip.digest(self.name), self.name, clip.sentence)) for clip in clips]


class _AskPlayer:
    def __init__(self, cassette: Cassette, name: str, max_batch: int) -> None:
        self._cassette, self.name, self.max_batch = cassette, name, max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        need = self._cassette.need
        replies = [str(need("ask", asked.digest(self.name), self.name, _text(asked))) for asked in questions]
        for at, reply in enumerate(replies):
            _stream(at, reply, on_text, cancelled)
        return replies


def _missing(cassette: Cassette, kind: Kind, keys: Sequence[str]) -> list[int]:
    """Where in the batch the calls are that must be made: each unknown one once."""
    return [at for at, key in enumerate(keys) if key not in keys[:at] and cassette.find(kind, key) is None]


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


def _differ(first: float | str, second: float | str) -> bool:
    return repr(first) != repr(second)  # so that NaN is one reply


def _text(question: Question) -> str:
    return " ".join(part for part in question.parts if isinstance(part, str))


def _excerpt(text: str) -> str:
    """Both ends: prompts often begin with the same rules."""
    text = " ".join(text.split())
    return text if len(text) <= 2 * _EXCERPT else f"{text[:_EXCERPT]} … {text[-_EXCERPT:]}"
