"""Capture times: a frame is as old as its packet, and never called fresher than it is."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from conftest import GOLDENS, Sender

from compass_edge.frames.clip import read_number
from compass_edge.frames.pyav_source import PyAvSource
from compass_edge.frames.source import Source

Open = Callable[..., Source]


def test_what_opening_read_ahead_is_not_called_fresh(opened: Open, sender: Callable[..., Sender]) -> None:
    before = time.monotonic_ns()
    source = opened(sender().url)
    after = time.monotonic_ns()
    time.sleep(0.05)  # what waits in FFmpeg's queue grows old
    frame = source.step()
    assert frame is not None
    assert before <= frame.captured_ns <= after
    assert frame.age_s >= 0.05


def capture_times(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """By the number each frame shows; packet n is said to have come at time n."""
    arrivals = itertools.count(1)
    monkeypatch.setattr(PyAvSource, "_arrival_ns", lambda self, packet: next(arrivals))
    source = PyAvSource(str(path), timeout_s=5, format="", options={}, threads=1)
    times = {}
    while (frame := source.fetch()) is not None:
        times[read_number(frame.to_ndarray(format="rgb24"))] = source.captured_ns(frame)
    return times


def test_pyav_dates_frames_with_and_without_time_stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What decoder_test.cpp asks of the C++ decoder."""
    truth = capture_times(GOLDENS / "h264.mp4", monkeypatch)
    in_display_order = [truth[number] for number in range(60)]
    assert sorted(in_display_order) == list(range(1, 61))
    assert in_display_order != sorted(in_display_order)  # the clip has B-frames
    raw = tmp_path / "raw.h264"
    with av.open(str(GOLDENS / "h264.mp4")) as container, av.open(str(raw), "w", format="h264") as bare:
        stream = container.streams.video[0]
        out = bare.add_stream_from_template(stream)
        for packet in container.demux(stream):
            if packet.size:
                packet.stream = out
                bare.mux(packet)
    guessed = capture_times(raw, monkeypatch)
    assert guessed.keys() == truth.keys()
    assert all(guessed[number] <= truth[number] for number in truth)
