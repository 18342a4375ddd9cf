"""The journal: the event stream on disk, so that a kill or a power cut costs no committed event.

A record (compass_edge/loop/recording.py has the format) reaches the file in one write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from compass_edge.errors import CompassError, UsageError
from compass_edge.loop.events import Event, to_dict
from compass_edge.loop.recording import HEADER, Anywhere, Recording, contents, open_file, parse, read_journal, record

Clock: TypeAlias = Callable[[], int]  # nanoseconds, for the reader of the file: no event depends on it
Warn: TypeAlias = Callable[[str], None]
MAX_BYTES = 256 << 20


class Files(Protocol):
    """The system calls that can fail while a journal is written: the os module, or a test's broken disk."""

    def write(self, fd: int, data: bytes, /) -> int: ...

    def fsync(self, fd: int, /) -> None: ...

    def ftruncate(self, fd: int, length: int, /) -> None: ...


class Journal:
    """Appends events to one file, which it holds locked against other processes. One thread at a time.

    Trouble with the disk, or a file of `max_bytes`, never raises here: recording stops, `failure` says why, and whoever
    estimates goes on.
    """

    def __init__(self, path: Anywhere, clock: Clock, warn: Warn | None, max_bytes: int, files: Files) -> None:
        """Not open yet: `create` and `resume` open it."""
        self.path, self.max_bytes, self.count, self.failure = Path(path), max_bytes, 0, ""
        self._clock, self._warn, self._files = clock, warn, files
        self._fd: int | None = None
        self._end, self._synced = 0, True

    @classmethod
    def create(
        cls,
        path: Anywhere,
        *,
        clock: Clock = time.time_ns,
        warn: Warn | None = None,
        max_bytes: int = MAX_BYTES,
        files: Files = os,
    ) -> Journal:
        """A new journal. A file that already holds something is never overwritten."""
        journal = cls(path, clock, warn, max_bytes, files)
        if journal._open(os.O_CREAT):
            journal.close()
            raise UsageError(f"The journal '{journal.path}' already holds something. Resume it, or name another file.")
        journal._begin()
        return journal

    @classmethod
    def resume(
        cls,
        path: Anywhere,
        *,
        clock: Clock = time.time_ns,
        warn: Warn | None = None,
        max_bytes: int = MAX_BYTES,
        files: Files = os,
    ) -> tuple[Journal, Recording]:
        """Goes on behind the last whole record of a journal, and gives what it holds. What was cut off is removed."""
        journal = cls(path, clock, warn, max_bytes, files)
        try:
            data = journal._open()
            recording = read_journal(path) if data is None else parse(journal.path, data)
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
        if self._write(record({"n": self.count, "at_ns": self._clock(), **to_dict(event)})):
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
            self._fd = open_file(self.path, os.O_RDWR | os.O_APPEND | flags)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return contents(self._fd)
        except BlockingIOError as error:
            self._release()
            raise UsageError(
                f"The journal '{self.path}' is being written by somebody else. Stop that one, or name another file."
            ) from error
        except OSError as error:
            self._failed(error)
            return None

    def _begin(self) -> None:
        """The first record, and the file's name in its folder: both must outlive a power cut."""
        if self._fd is None or not (self._write(HEADER) and self._sync()):
            return
        try:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._files.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot, and need not
                self._failed(error)

    def _write(self, line: bytes) -> bool:
        assert self._fd is not None
        if self._end + len(line) > self.max_bytes:
            self._stop(
                f"the next record would make it larger than {self.max_bytes} bytes",
                "begin a new journal, or raise max_bytes,",
            )
            return False
        rest = line
        try:
            while rest:  # once: what stops in between is a full disk, and the second write says so
                written = self._files.write(self._fd, rest)
                if written == 0:
                    raise OSError(errno.EIO, "nothing was written")
                rest = rest[written:]
        except OSError as error:
            with contextlib.suppress(OSError):  # then it is a torn tail, which every reader leaves out
                self._files.ftruncate(self._fd, self._end)
            self._failed(error)
            return False
        self._end += len(line)
        self._synced = False
        return True

    def _sync(self) -> bool:
        assert self._fd is not None
        try:
            self._files.fsync(self._fd)
        except OSError as error:  # never tried again: Linux forgets the pages that it could not write
            self._failed(error)
            return False
        self._synced = True
        return True

    def _cut(self) -> None:
        assert self._fd is not None
        try:
            self._files.ftruncate(self._fd, self._end)
        except OSError as error:  # a record behind what remains would make it a damaged middle
            self._failed(error)
        else:
            self._sync()

    def _failed(self, error: OSError) -> None:
        self._stop(error.strerror or str(error), "free or repair the disk")

    def _stop(self, reason: str, cure: str) -> None:
        self._release()
        self.failure = (
            f"Recording to the journal '{self.path}' has stopped: {reason}. Estimating goes on without a record; {cure} "
            "before the next run."
        )
        if self._warn is not None:
            self._warn(self.failure)

    def _release(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):
                os.close(fd)
