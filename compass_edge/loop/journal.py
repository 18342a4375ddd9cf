"""The journal: the event stream on disk, so that a kill or a power cut costs no committed event.

A line is a record: eight hex digits of CRC-32, a space, JSON. `less` shows it, a reader can tell what is whole, and a
record reaches the file in one write. The first line names the format.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.loop.events import Event, from_dict, to_dict

VERSION = 1
Anywhere: TypeAlias = str | os.PathLike[str]
Clock: TypeAlias = Callable[[], int]  # nanoseconds, for the reader of the file: no event depends on it
Warn: TypeAlias = Callable[[str], None]
# What is no fault of the path that was given: the robot goes on without a record.
_DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class Files(Protocol):
    """The system calls that can fail while a journal is written: the os module, or a test's broken disk."""

    def write(self, fd: int, data: bytes, /) -> int: ...

    def fsync(self, fd: int, /) -> None: ...

    def ftruncate(self, fd: int, length: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Recording:
    """What a journal holds."""

    events: tuple[Event, ...] = ()
    at_ns: tuple[int, ...] = ()  # when each was appended, by the writer's clock
    end_offset: int = 0  # where the last whole record ends
    cut_bytes: int = 0  # after it: what the writer had no time to finish
    note: str = ""  # says so, when there is something to say


class Journal:
    """Appends events to one file, which it holds locked against other processes. One thread at a time.

    Trouble with the disk never raises here: recording stops, `failure` says why, and whoever estimates goes on.
    """

    def __init__(self, path: Anywhere, clock: Clock, warn: Warn | None, files: Files) -> None:
        """Not open yet: `create` and `resume` open it."""
        self.path, self.count, self.failure = Path(path), 0, ""
        self._clock, self._warn, self._files = clock, warn, files
        self._fd: int | None = None
        self._end, self._synced = 0, True

    @classmethod
    def create(
        cls, path: Anywhere, *, clock: Clock = time.time_ns, warn: Warn | None = None, files: Files = os
    ) -> Journal:
        """A new journal. A file that already holds something is never overwritten."""
        journal = cls(path, clock, warn, files)
        if journal._open(os.O_CREAT):
            journal.close()
            raise UsageError(f"The journal '{journal.path}' already holds something. Resume it, or name another file.")
        journal._begin()
        return journal

    @classmethod
    def resume(
        cls, path: Anywhere, *, clock: Clock = time.time_ns, warn: Warn | None = None, files: Files = os
    ) -> tuple[Journal, Recording]:
        """Goes on behind the last whole record of a journal, and gives what it holds. What was cut off is removed."""
        journal = cls(path, clock, warn, files)
        try:
            data = journal._open()
            recording = read_journal(path) if data is None else _parse(journal.path, data)
        except CompassError:
            journal.close()
            raise
        journal.count, journal._end = len(recording.events), recording.end_offset
        if recording.cut_bytes:
            journal._cut()
        if recording.end_offset == 0:
            journal._begin()
        return journal, recording

    def append(self, event: Event) -> None:
        """Writes one record; when the event commits, it is on the disk before this returns."""
        if self._fd is None:
            return
        record = _record({"n": self.count, "at_ns": self._clock(), **to_dict(event)})
        if self._write(record):
            self.count += 1
            if type(event).commits:
                self._sync()

    def close(self) -> None:
        if self._fd is not None and not self._synced:
            self._sync()
        self._release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, flags: int = 0) -> bytes | None:
        """Opens and locks it, and gives what it holds; None when the disk cannot be written."""
        try:
            self._fd = _open(self.path, os.O_RDWR | os.O_APPEND | flags)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return _contents(self._fd)
        except BlockingIOError as error:
            self._release()
            raise UsageError(
                f"The journal '{self.path}' is being written by somebody else. Stop that one, or name another file."
            ) from error
        except OSError as error:
            self._stop(error)
            return None

    def _begin(self) -> None:
        """The first record, and the file's name in its folder: both must outlive a power cut."""
        if self._fd is None or not (self._write(_HEADER) and self._sync()):
            return
        try:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._files.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot, and need not
                self._stop(error)

    def _write(self, record: bytes) -> bool:
        assert self._fd is not None
        rest = record
        try:
            while rest:  # once: what stops in between is a full disk, and the second write says so
                written = self._files.write(self._fd, rest)
                if written == 0:
                    raise OSError(errno.EIO, "nothing was written")
                rest = rest[written:]
        except OSError as error:
            with contextlib.suppress(OSError):  # then it is a torn tail, which every reader leaves out
                self._files.ftruncate(self._fd, self._end)
            self._stop(error)
            return False
        self._end += len(record)
        self._synced = False
        return True

    def _sync(self) -> bool:
        assert self._fd is not None
        try:
            self._files.fsync(self._fd)
        except OSError as error:  # never tried again: Linux forgets the pages that it could not write
            self._stop(error)
            return False
        self._synced = True
        return True

    def _cut(self) -> None:
        assert self._fd is not None
        try:
            self._files.ftruncate(self._fd, self._end)
        except OSError as error:  # a record behind what remains would make it a damaged middle
            self._stop(error)
        else:
            self._sync()

    def _stop(self, error: OSError) -> None:
        self._release()
        self.failure = (
            f"Recording to the journal '{self.path}' has stopped: {error.strerror or error}. Estimating goes on without a "
            "record; free or repair the disk before the next run."
        )
        if self._warn is not None:
            self._warn(self.failure)

    def _release(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):
                os.close(fd)


def read_journal(path: Anywhere) -> Recording:
    """All whole records. A torn tail is left out and noted; any other damage is an IntegrityError that says where."""
    path = Path(path)
    try:
        fd = _open(path, os.O_RDONLY)
        try:
            return _parse(path, _contents(fd))
        finally:
            os.close(fd)
    except OSError as error:
        raise CompassError(f"The journal '{path}' cannot be read: {error.strerror or error}.") from error


def _parse(path: Path, data: bytes) -> Recording:
    if not data.startswith(_HEADER):
        return _headless(path, data)
    events: list[Event] = []
    times: list[int] = []
    offset = len(_HEADER)
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
    if _HEADER.startswith(data) or (len(data) <= len(_HEADER) and not data.strip(b"\0")):
        return Recording(cut_bytes=len(data), note=_note(path, 0, data))
    line = data.split(b"\n", 1)[0]
    if _checked(line) is not None and line[9:].startswith(_HEADER[9:-3]):
        raise IntegrityError(
            f"The journal '{path}' says {line[9:].decode(errors='replace')} in its header (at byte 0), and version "
            f"{VERSION} was expected. Read it with the compass-edge that wrote it."
        )
    raise IntegrityError(
        f"'{path}' is not a journal, or its header is damaged (at byte 0): it begins with {data[:24]!r} and should begin "
        f"with {_HEADER[:24]!r}. Name a file that `Journal.create` made."
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


def _record(values: dict[str, Any]) -> bytes:
    # Text from a model may hold half a surrogate pair: json.loads takes it back the same way.
    body = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _checked(line: bytes) -> bytes | None:
    """The JSON of a line (without its end) whose checksum is right."""
    body = line[9:]
    return body if line[:9] == b"%08x " % zlib.crc32(body) else None


_HEADER = _record({"format": "compass-edge journal", "version": VERSION})


def _open(path: Path, flags: int) -> int:
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


def _contents(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read()
