"""Server-sent events: lines of bytes to the data that they carry, wherever the bytes were cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compass_edge.engines.openai.faults import Passing

MAX_LINE = 1 << 20
_END = re.compile(rb"\r\n|\n|\r")
_FIELDS = {b"data", b"event", b"id", b"retry", b"error"}


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each event. One that the stream ends in the middle of is dropped, as the standard wants it.

    The standard also wants unknown lines to be ignored. Here they are a fault: a piece of text whose line was damaged would
    be missing from the reply, and nobody would notice. llama.cpp has a field of its own, `error`, which is taken as data.
    """
    data: list[bytes] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield _text(b"\n".join(data))
            data = []
            continue
        name, _, value = line.partition(b":")
        if name and name not in _FIELDS:
            raise Passing(f"sent a line that is no server-sent event: {line[:80]!r}.")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"error":
            data.append(b'{"error": ' + value + b"}")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest, start, first = b"", 0, True
    for chunk in chunks:
        rest, start = rest[start:] + chunk, 0
        if first and len(rest) >= 3:
            start, first = 3 * rest.startswith(b"\xef\xbb\xbf"), False  # a byte order mark is allowed
        for end in _END.finditer(rest, start):
            if end[0] == b"\r" and end.end() == len(rest):
                break  # its \n may still come
            yield rest[start : end.start()]
            start, first = end.end(), False
        if len(rest) - start > MAX_LINE:
            raise Passing(f"sent a line of more than {MAX_LINE} bytes.")
    if rest[start:].endswith(b"\r"):
        yield rest[start:-1]


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Passing(f"sent an event that is not UTF-8: {error}.") from error
