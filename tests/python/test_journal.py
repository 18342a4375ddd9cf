"""Writing a journal: whatever is full, broken or killed, the events that were written stay, and the robot goes on."""

from __future__ import annotations

import errno
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from journal_samples import FEW, sentence, write

from compass_edge.errors import UsageError
from compass_edge.loop import events as e
from compass_edge.loop.journal import Journal
from compass_edge.loop.mark import Mark
from compass_edge.loop.recording import read_journal


class Disk:
    """The os module until the n-th write or fsync: that one fails, after so many bytes, and every one after it too."""

    def __init__(self, *, writes: int = 1 << 30, part: int = 0, fsyncs: int = 1 << 30, cuts: bool = True) -> None:
        self.writes, self.part, self.fsyncs, self.cuts = writes, part, fsyncs, cuts
        self.synced = 0

    def write(self, fd: int, data: bytes, /) -> int:
        self.writes -= 1
        if self.writes >= 0:
            return os.write(fd, data)
        part, self.part = self.part, 0
        if part:
            return os.write(fd, data[:part])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fsync(self, fd: int, /) -> None:
        self.synced += 1
        self.fsyncs -= 1
        if self.fsyncs < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(fd)

    def ftruncate(self, fd: int, length: int, /) -> None:
        if not self.cuts:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        os.ftruncate(fd, length)


def test_only_commits_wait_for_the_disk(tmp_path: Path) -> None:
    disk = Disk()
    journal = Journal.create(tmp_path / "journal", files=disk)
    assert disk.synced == 2  # the header, and its name in the folder
    for event in FEW:
        before = disk.synced
        journal.append(event)
        assert disk.synced - before == type(event).commits
    journal.append(e.FrameScored(Mark(40, 9), 0.5))
    before = disk.synced
    journal.close()
    assert disk.synced == before + 1  # an orderly end keeps the scores too
    journal.append(FEW[0])
    journal.close()
    assert len(read_journal(tmp_path / "journal").events) == len(FEW) + 1


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for data in (write(path, FEW), b"x"):
        path.write_bytes(data)
        with pytest.raises(UsageError, match="Resume it, or name another file") as caught:
            Journal.create(path)
        sentence(caught, path, 2)
        assert path.read_bytes() == data


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    other = "import sys; from compass_edge.loop.journal import Journal; Journal.resume(sys.argv[1])"
    with Journal.create(path) as journal:
        journal.append(FEW[0])
        for call in (Journal.create, Journal.resume):
            with pytest.raises(UsageError, match="is being written by somebody else") as caught:
                call(path)
            sentence(caught, path, 2)
        second = subprocess.run([sys.executable, "-c", other, path], capture_output=True, text=True, check=False)
        assert "is being written by somebody else" in second.stderr
        assert read_journal(path).events == (FEW[0],)  # reading needs no lock
        journal.append(FEW[1])
    subprocess.run([sys.executable, "-c", other, path], check=True)


@pytest.mark.parametrize("cuts", [True, False])
@pytest.mark.parametrize("part", [0, 1, 9, 40])
def test_a_full_disk_stops_only_the_record(tmp_path: Path, part: int, cuts: bool) -> None:
    for good in range(len(FEW) + 1):  # the header is the first write
        path = tmp_path / f"journal{good}"
        said: list[str] = []
        disk = Disk(writes=good, part=part, cuts=cuts)
        with Journal.create(path, warn=said.append, files=disk) as journal:
            for event in FEW:
                journal.append(event)
        assert said == [journal.failure]
        assert "No space left" in journal.failure
        assert journal.failure.endswith(".")
        recording = read_journal(path)
        assert list(recording.events) == FEW[: max(0, good - 1)]
        assert journal.count == len(recording.events)
        assert recording.cut_bytes == (0 if cuts else part)
        resumed, _ = Journal.resume(path)
        with resumed:
            for event in FEW[journal.count :]:
                resumed.append(event)
        assert list(read_journal(path).events) == FEW


def test_a_failing_fsync_stops_the_record(tmp_path: Path) -> None:
    for good in range(6):
        path = tmp_path / f"journal{good}"
        said: list[str] = []
        with Journal.create(path, warn=said.append, files=Disk(fsyncs=good)) as journal:
            for event in FEW:
                journal.append(event)
        recording = read_journal(path)
        assert list(recording.events) == FEW[: len(recording.events)]
        assert len(said) == (good < 5)
        if said:
            assert "Input/output error" in journal.failure


def test_a_tail_that_cannot_be_cut_is_not_written_behind(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    data = write(path, FEW)[:-5]
    for disk in (Disk(cuts=False), Disk(fsyncs=0)):
        path.write_bytes(data)
        journal, recording = Journal.resume(path, files=disk)
        with journal:
            assert journal.failure
            journal.append(FEW[-1])
        assert list(recording.events) == list(read_journal(path).events) == FEW[:-1]


def test_a_disk_that_turned_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dying SD card looks like: the record can be read, and the robot starts."""
    path = tmp_path / "journal"
    write(path, FEW)
    opened = os.open

    def read_only(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    journal, recording = Journal.resume(path)
    journal.append(FEW[0])
    assert list(recording.events) == FEW
    assert "Read-only file system" in journal.failure
    assert "Read-only file system" in Journal.create(tmp_path / "new").failure


def test_it_stops_before_it_outgrows_its_limit(tmp_path: Path) -> None:
    data = write(tmp_path / "whole", FEW)
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    for limit in sorted({0, *ends, *(end - 1 for end in ends)}):
        path, said = tmp_path / f"journal{limit}", list[str]()
        with Journal.create(path, clock=itertools.count(100).__next__, warn=said.append, max_bytes=limit) as journal:
            for event in FEW:
                journal.append(event)
        fitting = max((end for end in ends if end <= limit), default=0)
        assert path.read_bytes() == data[:fitting]  # not a byte more, and everything before it stays
        assert said == ([journal.failure] if limit < len(data) else [])
        if said:
            assert f"larger than {limit} bytes" in journal.failure
            assert "begin a new journal, or raise max_bytes" in journal.failure


def test_what_fits_again_is_not_written_behind_what_did_not(tmp_path: Path) -> None:
    """A hole in the record would be worse than its end."""
    long, short = e.EpisodeStarted("x" * 300, Mark(0, 0), {}, {}), e.Ended("done")
    with Journal.create(tmp_path / "journal", max_bytes=300) as journal:
        journal.append(long)
        journal.append(short)
    assert read_journal(tmp_path / "journal").events == ()


def test_a_journal_that_is_full_is_resumed_under_a_higher_limit(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    full = len(write(path, FEW[:3]))
    journal, recording = Journal.resume(path, max_bytes=full)
    with journal:
        journal.append(FEW[3])
    assert "larger than" in journal.failure
    assert list(recording.events) == list(read_journal(path).events) == FEW[:3]
    journal, _ = Journal.resume(path, max_bytes=2 * full)
    with journal:
        for event in FEW[3:]:
            journal.append(event)
    assert list(read_journal(path).events) == FEW


LIMITED = """
import resource, signal, sys
from compass_edge.loop.events import FrameScored
from compass_edge.loop.journal import Journal
from compass_edge.loop.mark import Mark
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with Journal.create(sys.argv[1]) as journal:
    for seq in range(30):
        journal.append(FrameScored(Mark(seq, seq), seq / 30))
print(journal.count, journal.failure)
"""


def test_a_real_limit(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    ran = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True)
    count, failure = ran.stdout.strip().split(" ", 1)
    recording = read_journal(path)
    assert 0 < int(count) < 30
    assert recording.events == tuple(e.FrameScored(Mark(seq, seq), seq / 30) for seq in range(int(count)))
    assert recording.cut_bytes == 0
    assert "File too large" in failure


KILLED = """
import sys
from compass_edge.loop.events import Ended, FrameScored, StreamEnded
from compass_edge.loop.journal import Journal
from compass_edge.loop.mark import Mark
journal, recording = Journal.resume(sys.argv[1])
seq = len(recording.events)
print("resumed", flush=True)
while True:
    journal.append(StreamEnded(Mark(seq, 0)) if seq % 3 == 0 else FrameScored(Mark(seq, 0), 0.5))
    seq += 1
    if (seq - 1) % 3 == 0:
        print(seq, flush=True)
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.touch()
    moments = random.Random(7)
    for _ in range(8):
        with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"resumed\n"
            time.sleep(moments.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            reported = process.stdout.read().split(b"\n")[:-1]
        recording = read_journal(path)
        assert len(recording.events) >= int(reported[-1] if reported else 0)
        for seq, event in enumerate(recording.events):
            assert event == (e.StreamEnded(Mark(seq, 0)) if seq % 3 == 0 else e.FrameScored(Mark(seq, 0), 0.5))
    assert len(recording.events) > 8
