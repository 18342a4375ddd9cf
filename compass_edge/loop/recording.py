"""A recording: what a journal holds, read back whole or refused with the place where it is damaged.

A line is a record: eight hex digits of CRC-32, a space, JSON. `less` shows it, and a reader can tell what is whole. The
first line names the format.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.loop.events import Event, from_dict

VERSION = 1
Anywhere: TypeAlias = str | os.PathLike[str]
# What is no fault of the path that was given: the robot goes on without a record.
_DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


@dataclass(frozen=True, slots=True)
class Recording:
    """What a journal holds."""

    events: tuple[Event, ...] = ()
    at_ns: tuple[int, ...] = ()  # when each was appended, by the writer's clock
    end_offset: int = 0  # where the last whole record ends
    cut_bytes: int = 0  # after it: what the writer had no time to finish
    note: str = ""  # says so, when there is something to say


def read_journal(path: Anywhere) -> Recording:
    """All whole records. A torn tail is left out and noted; any other damage is an IntegrityError that says where."""
    path = Path(path)
    try:
        fd = open_file(path, os.O_RDONLY)
        try:
            return parse(path, contents(fd))
        finally:
            os.close(fd)
    except OSError as error:
        raise CompassError(f"The journal '{path}' cannot be read: {error.strerror or error}.") from error


def parse(path: Path, data: bytes) -> Recording:
    """What `read_journal` says of a file with this data."""
    if not data.startswith(HEADER):
        return _headless(path, data)
    events: list[Event] = []
    times: list[int] = []
    offset = len(HEADER)
    while True:
        where = f"Record {len(events)} of the journal '{path}' (at byte {offset})"
        end = data.find(b"\n", offset) + 1
        body = _checked(data[offset : end - 1]) if end else None
        if body is None:
            break
        at_ns, event = _read(where, len(events), body)
        events.append(event)
        times.append(at_ns)
        offset = end
    rest = data[offset:]
    if any(_checked(line) is not None for line in rest.split(b"\n")[1:]):
        raise IntegrityError(
            f"{where} is damaged, though whole records follow it: no kill does this. Take the file from a backup, or begin "
            "a new journal."
        )
    return Recording(tuple(events), tuple(times), offset, len(rest), _note(path, offset, rest))


def _headless(path: Path, data: bytes) -> Recording:
    """Nothing, or as much of the first record as a cut at its very beginning leaves."""
    if HEADER.startswith(data) or (len(data) <= len(HEADER) and not data.strip(b"\0")):
        return Recording(cut_bytes=len(data), note=_note(path, 0, data))
    line = data.split(b"\n", 1)[0]
    if _checked(line) is not None and line[9:].startswith(HEADER[9:-3]):
        raise IntegrityError(
            f"The journal '{path}' says {line[9:].decode(errors='replace')} in its header (at byte 0), and version "
            f"{VERSION} was expected. Read it with the compass-edge that wrote it."
        )
    raise IntegrityError(
        f"'{path}' is not a journal, or its header is damaged (at byte 0): it begins with {data[:24]!r} and should begin "
        f"with {HEADER[:24]!r}. Name a file that `Journal.create` made."
    )


def _read(where: str, number: int, body: bytes) -> tuple[int, Event]:
    """A record whose checksum is right: what is wrong with it now was written that way."""
    try:
        values = json.loads(body)
        n, at_ns = values.pop("n"), int(values.pop("at_ns"))
        event = from_dict(values)
    except IntegrityError as error:
        raise IntegrityError(f"{where} cannot be read by this version of compass-edge. {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise IntegrityError(f"{where} is whole, but it is not an event: {error!r}.") from error
    if n != number:
        raise IntegrityError(
            f"{where} has the number {n!r}, and {number} was expected: records are missing or came from another file."
        )
    return at_ns, event


def _note(path: Path, offset: int, rest: bytes) -> str:
    if not rest:
        return ""
    return (
        f"The last {len(rest)} bytes of the journal '{path}' (from byte {offset}) are not a whole record and were left "
        "out: the writer was cut off."
    )


def record(values: dict[str, Any]) -> bytes:
    """A line of a journal."""
    # Text from a model may hold half a surrogate pair: json.loads takes it back the same way.
    body = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _checked(line: bytes) -> bytes | None:
    """The JSON of a line (without its end) whose checksum is right."""
    body = line[9:]
    return body if line[:9] == b"%08x " % zlib.crc32(body) else None


HEADER = record({"format": "compass-edge journal", "version": VERSION})


def open_file(path: Path, flags: int) -> int:
    """An open regular file. OSError is trouble with the disk; what is wrong with the path itself is a UsageError."""
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)  # a named pipe would block
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _DISK_TROUBLE:
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"The journal '{path}' cannot be opened: {reason}. Name a file that can be.") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UsageError(f"The journal '{path}' cannot be opened: it is not a regular file. Name one that is.")
    return fd


def contents(fd: int) -> bytes:
    """All of it, from the beginning: the file was just opened."""
    with open(fd, "rb", closefd=False) as file:
        return file.read()
