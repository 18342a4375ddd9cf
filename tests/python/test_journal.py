"""The journal: whatever is cut, damaged, full or killed, it gives whole events in order, or says where it cannot."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.loop import events as e
from compass_edge.loop.journal import Journal, Recording, read_journal
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Completion, Plan, Step, Subtask

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)  # surrogates and control characters too
NUMBER = st.integers(0, 2**62)
REAL = st.floats(allow_nan=False)
JSON = st.dictionaries(TEXT, st.recursive(TEXT | REAL | st.booleans() | st.none(), st.lists, max_leaves=4), max_size=3)
MARK = st.builds(Mark, NUMBER, NUMBER)
PLAN = st.builds(Plan, st.lists(st.builds(Step, NUMBER, TEXT, TEXT, st.booleans()), max_size=3).map(tuple), NUMBER)
SUBTASK = st.builds(Subtask, TEXT, TEXT, TEXT, TEXT, st.sampled_from(get_args(Completion)))
OBJECTS = st.lists(st.tuples(TEXT, NUMBER), max_size=3).map(tuple)
STRATEGIES: dict[type[object], st.SearchStrategy[e.Event]] = {
    e.EpisodeStarted: st.builds(e.EpisodeStarted, TEXT, MARK, JSON, st.dictionaries(TEXT, TEXT, max_size=3), TEXT),
    e.Oriented: st.builds(e.Oriented, MARK, st.booleans(), OBJECTS, st.none() | PLAN),
    e.StepBegun: st.builds(e.StepBegun, NUMBER, NUMBER, MARK, SUBTASK, st.booleans()),
    e.FrameScored: st.builds(e.FrameScored, MARK, REAL),
    e.CompletionProposed: st.builds(e.CompletionProposed, MARK, MARK, REAL, st.sampled_from(["high", "peak", "end"])),
    e.Verified: st.builds(e.Verified, MARK, st.booleans(), TEXT, TEXT, TEXT, TEXT, TEXT),
    e.Reviewed: st.builds(e.Reviewed, MARK, PLAN),
    e.ReplyInvalid: st.builds(
        e.ReplyInvalid,
        st.sampled_from(get_args(e.Role)),
        st.sampled_from(get_args(e.Asked)),
        st.sampled_from(get_args(e.Trouble)),
        TEXT,
        MARK,
    ),
    e.Gap: st.builds(e.Gap, MARK, NUMBER, TEXT, st.booleans()),
    e.StreamEnded: st.builds(e.StreamEnded, MARK),
    e.Stalled: st.builds(e.Stalled, NUMBER, NUMBER),
    e.Ended: st.builds(e.Ended, st.sampled_from(get_args(e.Outcome))),
}
EVENTS = st.one_of(*STRATEGIES.values())
FEW: list[e.Event] = [
    e.EpisodeStarted("把杯子放好 ☕\n", Mark(0, 5), {"every": 10}, {"prm": "p"}),
    e.FrameScored(Mark(10, 6), 0.25),
    e.Verified(Mark(20, 7), True, "a", "b", "c", "d", "e"),
    e.FrameScored(Mark(30, 8), 1e-300),
    e.Ended("done"),
]


def write(path: Path, events: list[e.Event]) -> bytes:
    with Journal.create(path, clock=itertools.count(100).__next__) as journal:
        for event in events:
            journal.append(event)
        assert journal.failure == ""
        assert journal.count == len(events)
    return path.read_bytes()


def record_ends(data: bytes) -> list[int]:
    """Where the header and each record end."""
    return [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]


def sentence(caught: pytest.ExceptionInfo[CompassError], path: Path, exit_code: int) -> str:
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert text.endswith(".")
    assert caught.value.exit_code == exit_code
    return text


def sealed(values: object) -> bytes:
    body = json.dumps(values).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


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


def test_every_kind_has_a_strategy() -> None:
    assert set(STRATEGIES) == set(get_args(e.Event))


@settings(max_examples=60, deadline=None)
@given(st.tuples(*STRATEGIES.values()), st.lists(EVENTS, max_size=4), st.lists(st.integers(), min_size=20))
def test_round_trip_of_every_kind(one_each: tuple[e.Event, ...], more: list[e.Event], times: list[int]) -> None:
    events = [*one_each, *more]
    clock = iter(times).__next__
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        with Journal.create(path, clock=clock) as journal:
            for event in one_each:
                journal.append(event)
        journal, before = Journal.resume(path, clock=clock)
        assert before == read_journal(path)
        with journal:
            for event in more:
                journal.append(event)
        assert read_journal(path) == Recording(
            tuple(events), tuple(times[: len(events)]), end_offset=path.stat().st_size, cut_bytes=0, note=""
        )


def test_a_person_can_read_it(tmp_path: Path) -> None:
    lines = write(tmp_path / "journal", FEW).decode().splitlines()
    assert len(lines) == 1 + len(FEW)
    assert json.loads(lines[0][9:]) == {"format": "compass-edge journal", "version": 1}
    assert "把杯子放好 ☕" in lines[1]
    for number, line in enumerate(lines[1:]):
        values = json.loads(line[9:])
        assert int(line[:8], 16) == zlib.crc32(line[9:].encode())
        assert (values["n"], values["at_ns"]) == (number, 100 + number)
        assert values["event"] == type(FEW[number]).__name__


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


def test_cut_at_every_byte(tmp_path: Path) -> None:
    data = write(tmp_path / "whole", FEW)
    ends = record_ends(data)
    path = tmp_path / "cut"
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends[1:])
        end = max((end for end in ends if end <= size), default=0)
        read = read_journal(path)
        journal, recording = Journal.resume(path)
        assert recording == read
        assert list(recording.events) == FEW[:whole]
        assert (recording.end_offset, recording.cut_bytes) == (end, size - end)
        assert bool(recording.note) == (size != end)
        with journal:
            assert journal.failure == ""
            for event in FEW[whole:]:
                journal.append(event)
        again = read_journal(path)
        assert list(again.events) == FEW
        assert again.note == ""


def test_a_tail_of_zeros_is_a_torn_tail(tmp_path: Path) -> None:
    """What a power cut leaves on some file systems: the size arrived, the bytes did not."""
    data = write(tmp_path / "whole", FEW)
    path = tmp_path / "zeros"
    for end in record_ends(data):
        for start in (end, end - 10):
            path.write_bytes(data[:start] + bytes(50))
            if start < record_ends(data)[0]:
                continue
            recording = read_journal(path)
            assert list(recording.events) == FEW[: len(recording.events)]
            assert recording.cut_bytes >= 50
    path.write_bytes(bytes(30))
    assert read_journal(path) == Recording(cut_bytes=30, note=read_journal(path).note)


def test_a_flipped_byte_never_makes_an_event(tmp_path: Path) -> None:
    data = write(tmp_path / "whole", FEW)
    ends = record_ends(data)
    path = tmp_path / "flipped"
    for offset, change in itertools.product(range(len(data)), (1, 32, 255, None)):
        byte = ord("\n") if change is None else data[offset] ^ change
        if byte == data[offset]:
            continue
        damaged = bytearray(data)
        damaged[offset] = byte
        path.write_bytes(damaged)
        if offset < ends[-2] - 1:  # before the end of the last record but one
            with pytest.raises(IntegrityError) as caught:
                read_journal(path)
            text = sentence(caught, path, 4)
            number = sum(end <= offset for end in ends) - 1
            where = 0 if number < 0 else ends[number]
            assert f"at byte {where})" in text
            assert number < 0 or f"Record {number} " in text
            with pytest.raises(IntegrityError):
                Journal.resume(path)
            assert path.read_bytes() == damaged  # evidence is not cut away
        else:
            recording = read_journal(path)
            assert list(recording.events) == FEW[: len(recording.events)]
            assert len(recording.events) < len(FEW)
            assert recording.cut_bytes > 0
            assert recording.note


def test_whole_records_that_do_not_belong(tmp_path: Path) -> None:
    data = write(tmp_path / "whole", FEW)
    lines = data.splitlines(keepends=True)
    path = tmp_path / "other"
    last = {"n": len(FEW), "at_ns": 1}
    for words, damaged in {
        "Record 1 .* has the number 2, and 1 was expected": b"".join(lines[:2] + lines[3:]),
        "Record 2 .* has the number 1, and 2 was expected": b"".join([*lines[:3], lines[2]]),
        "Record 5 .* kind must be one of": data + sealed({**last, "event": "Celebrated"}),
        "Record 5 .* does not have the fields": data + sealed({**last, "event": "Ended", "why": ""}),
        "Record 5 .* is not an event": data + sealed({"event": "Ended", "outcome": "done"}),
        "Record 5 .*, but it is not an event": data + sealed([1, 2]),
        "Record 5 .* is whole, but": data + b"00000000 \n",
        '"version": 2} in its header .* version 1 was expected': sealed(
            {"format": "compass-edge journal", "version": 2}
        ),
        "is not a journal": b"Dear diary,\n",
        "is not a journal, or": lines[1],
    }.items():
        path.write_bytes(damaged)
        with pytest.raises(IntegrityError, match=words) as caught:
            read_journal(path)
        assert "at byte " in sentence(caught, path, 4)
        with pytest.raises(IntegrityError):
            Journal.resume(path)
        assert path.read_bytes() == damaged


def test_empty_and_header_only(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.touch()
    assert read_journal(path) == Recording()
    Journal.create(path).close()  # killed before the header, it may be created again
    assert read_journal(path) == Recording(end_offset=path.stat().st_size)
    journal, recording = Journal.resume(path)
    journal.close()
    assert recording.events == ()


def test_paths_that_are_no_journal(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    calls: list[Callable[[Path], object]] = [read_journal, Journal.resume]
    for name, call in itertools.product(["nowhere", "no/where", "", "pipe", "z\0ero"], calls):
        with pytest.raises(UsageError, match="cannot be opened"):
            call(tmp_path / name)
    for name in ["no/where", "", "pipe", "z\0ero"]:
        with pytest.raises(UsageError, match="cannot be opened") as caught:
            Journal.create(tmp_path / name)
        sentence(caught, tmp_path / name, 2)


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
