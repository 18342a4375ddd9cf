"""The intake: recorded and live input give the same ticks."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest
from conftest import eventually
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_samples import every_tick, live_ring, push, scripted, seqs, told

from compass_edge.frames.source import Source
from compass_edge.loop.intake import LiveTicks, RecordedTicks
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick

Open = Callable[..., Source]


@pytest.mark.parametrize(
    ("frames", "expected"), [(0, []), (1, [0]), (11, [0, 10]), (14, [0, 10, 13]), (20, [0, 10, 19])]
)
def test_the_last_frame_is_a_tick_in_a_recording_and_live(frames: int, expected: list[int]) -> None:
    ticks = RecordedTicks(scripted(frames))
    assert seqs(every_tick(ticks)) == expected
    assert ticks.over
    assert ticks.failure == ""
    assert ticks.after(10**6) is None
    writer, live = live_ring(history=32)
    for number in range(frames):
        push(writer, number)
    live.end()
    assert seqs(every_tick(live)) == expected
    assert live.over


@settings(max_examples=30)
@given(
    frames=st.integers(0, 80),
    every=st.integers(1, 12),
    gaps=st.sets(st.integers(0, 80), max_size=4).map(tuple),
    chance=st.randoms(use_true_random=False),
)
def test_the_same_frames_give_the_same_ticks(
    frames: int, every: int, gaps: tuple[int, ...], chance: random.Random
) -> None:
    """Recorded, or pushed with pauses of any length for the loop to look."""
    recorded = told(every_tick(RecordedTicks(scripted(frames, gaps=gaps), Settings(every=every))))
    writer, live = live_ring(settings=Settings(every=every))
    found: list[Tick] = []
    for number in range(frames):
        push(writer, number, number in gaps)
        if number % 8 == 7 or chance.random() < 0.3:
            live.pump()
        if chance.random() < 0.2 and (tick := live.after(found[-1].mark.seq if found else -1)) is not None:
            found.append(tick)
    live.end()
    while (tick := live.after(found[-1].mark.seq if found else -1)) is not None:
        found.append(tick)
    assert live.over
    assert told(found) == recorded


def test_a_thread_that_pushes_gives_the_same_ticks() -> None:
    frames = 300
    writer, live = live_ring()
    ahead = threading.Semaphore(8)  # the ring's history: so many may be new when the loop looks

    def camera() -> None:
        for number in range(frames):
            ahead.acquire()
            push(writer, number)
        live.end()

    thread = threading.Thread(target=camera)
    thread.start()
    found: list[Tick] = []
    seen = 0
    while not live.over:
        while (tick := live.after(found[-1].mark.seq if found else -1)) is not None:
            found.append(tick)
        offered = live.stats.frames.offered
        if offered > seen:
            ahead.release(offered - seen)
        seen = offered
    thread.join()
    assert told(found) == told(every_tick(RecordedTicks(scripted(frames))))
    assert live.stats.frames.missing == 0


def test_a_file_gives_the_same_ticks_stepped_and_played(opened: Open, golden: Callable[[str], str]) -> None:
    recorded = every_tick(RecordedTicks(opened(golden("h264.mp4"))))
    assert seqs(recorded) == [0, 10, 20, 30, 40, 50, 59]
    source = opened(golden("h264.mp4"), history=64)
    live = LiveTicks(source.ring, source=source)
    source.start()
    played: list[Tick] = []

    def over() -> bool:
        while (tick := live.after(played[-1].mark.seq if played else -1)) is not None:
            played.append(tick)
        return live.over

    assert eventually(over)
    assert [(tick.mark.seq, tick.image, tick.gap) for tick in played] == [
        (tick.mark.seq, tick.image, tick.gap) for tick in recorded
    ]
