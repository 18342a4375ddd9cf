"""The cassette: model calls, kept in a file under the hash of their input.

It works because models are functions of their input (compass_edge/models.py); where one is not, the cassette says so.
Who records and plays is in compass_edge/loop/cassette_models.py.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any, Literal

from compass_edge.errors import CompassError, IntegrityError, UsageError

Kind = Literal["score", "ask"]
_START = b'{"key": "'
_EXCERPT = 60  # characters from either end
MAX_BYTES = 1 << 30


class Cassette:
    """The calls of one file, one JSON line each. All methods may be called from any thread.

    A full disk, or a file of `max_bytes`, stops the recording and never a model call: `failure` says why. What is not on
    the file is not in memory either, which is so bounded by the same number.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] | None, max_bytes: int) -> None:
        """Use `open`."""
        self.path, self.max_bytes, self.note, self.failure = path, max_bytes, "", ""
        self.conflicts = 0  # calls that were answered twice, and differently: the first answer is kept
        self._warn, self._lock = warn, threading.RLock()
        self._replies: dict[tuple[str, str], float | str] = {}  # by kind and key
        self._models: set[tuple[str, str]] = set()  # kind and name
        self._end = self._size = 0  # of the whole lines, and of the file as it was read
        self._file: FileIO | None = None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, warn: Callable[[str], None] | None = None, max_bytes: int = MAX_BYTES
    ) -> Cassette:
        """What the file holds so far; nothing if there is none yet. Only recording writes to it."""
        cassette = cls(Path(path), warn, max_bytes)
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
                excerpt = {"sentence" if kind == "score" else "prompt": _excerpt(text)}
                if self._write({"key": key, "model": model, "kind": kind, "reply": reply, **excerpt}):
                    self._replies[kind, key] = reply
                    self._models.add((kind, model))
                return reply
            if _differ(first, reply):
                self.conflicts += 1
                self._say(
                    f"The model '{model}' answered one {kind} call about '{_excerpt(text)}' in two ways: it is not a function "
                    "of its input. The first answer is kept; set its temperature to 0."
                )
            return first

    def must_exist(self) -> None:
        """For whoever plays it."""
        if not (self._replies or self.path.exists()):
            raise UsageError(f"There is no cassette '{self.path}' to play. Record one first, or correct the path.")

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

    def _write(self, values: dict[str, Any]) -> bool:
        if self.failure:
            return False
        line = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            file = self._opened()
            if file.tell() + len(line) > self.max_bytes:
                raise OSError(f"the next call would make it larger than {self.max_bytes} bytes")
            if file.write(line) != len(line):
                raise OSError("no space left for a whole line")
        except OSError as error:  # a line that was cut off is left out by the next reader
            self.failure = (
                f"Recording to the cassette '{self.path}' has stopped: {error.strerror or error}. Model calls go on."
            )
            self._say(self.failure)
            return False
        return True

    def _opened(self) -> FileIO:
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
            if self._end < self._size == self.path.stat().st_size:  # nobody else has cut the torn line off
                self._file.truncate(self._end)
                self._file.seek(0, os.SEEK_END)
            self._end = self._size
        return self._file

    def _say(self, text: str) -> None:
        if self._warn is not None:
            self._warn(text)


def _differ(first: float | str, second: float | str) -> bool:
    return repr(first) != repr(second)  # so that NaN is one reply


def _excerpt(text: str) -> str:
    """Both ends: prompts often begin with the same rules."""
    text = " ".join(text.split())
    return text if len(text) <= 2 * _EXCERPT else f"{text[:_EXCERPT]} … {text[-_EXCERPT:]}"
