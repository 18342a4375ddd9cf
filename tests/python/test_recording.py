"""Recordings: whatever was cut or damaged, a journal gives whole events in order, or says where it cannot."""

from __future__ import annotations

import itertools
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_samples import EVENTS, FEW, STRATEGIES, sentence, write

from compass_edge.errors import IntegrityError, UsageError
from compass_edge.loop import events as e
from compass_edge.loop.journal import Journal
from compass_edge.loop.recording import Recording, read_journal


def record_ends(data: bytes) -> list[int]:
    """Where the header and each record end."""
    return [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]


def sealed(values: object) -> bytes:
    body = json.dumps(values).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def test_every_kind_has_a_strategy() -> None:
    assert set(STRATEGIES) == set(get_args(e.Event))


@settings(max_examples=60)
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
