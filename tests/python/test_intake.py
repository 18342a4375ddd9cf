"""The intake: recorded and live input give the same ticks, and nothing that is lost is lost silently."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDENS, VIDEOS, eventually
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.source import Source, push_ring
from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.intake import LiveTicks, RecordedTicks, frame_digest, open_ticks
from compass_edge.loop.settings import Settings
from compass_edge.loop.ticks import Tick, Ticks

Open = Callable[..., Source]
HOLDS = 4 + 4 + 4 + 16


def small(every: int) -> dict[str, Any]:
    """Holds HOLDS frames."""
    return {"settings": Settings(every=every, max_frames=4, candidate=CandidateRule(peak_memory=4)), "backlog": 4}


def picture(number: int) -> Any:
    return np.random.default_rng(number).integers(0, 256, (8, 18, 3), np.uint8)


def push(writer: Any, number: int, gap: bool = False) -> None:
    writer.push(picture(number), captured_ns=1000 + 10 * number, gap_before=gap)


class Script:
    """A feed of `frames` pictures, of which some follow a gap; it may break off instead of ending."""

    def __init__(self, frames: int, *, gaps: tuple[int, ...] = (), breaks: str = "", live: bool = False) -> None:
        self.ring = push_ring(18, 8, history=2, leases=2)
        self.writer = self.ring.writer()
        self.frames, self.gaps, self.breaks, self.live = frames, gaps, breaks, live
        self.done, self.state, self.failure = 0, "running", ""

    info = property(
        lambda self: {
            **dict.fromkeys(("width", "height", "rotation", "frame_rate", "duration_s", "frames"), 0),
            **dict.fromkeys(("codec", "pixel_format"), ""),
            "live": self.live,
        }
    )
    stats = property(lambda self: {})

    def step(self) -> str:
        if self.done < self.frames:
            push(self.writer, self.done, self.done in self.gaps)
            self.done += 1
        else:
            self.state, self.failure = ("failed", self.breaks) if self.breaks else ("ended", "")
        return self.state

    def seek(self, time_s: float) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


def scripted(frames: int, **options: Any) -> Source:
    return Source("script", Script(frames, **options), "pyav")


def every_tick(ticks: Ticks) -> list[Tick]:
    """As the loop does it: asks for the next one and lets go of the one before."""
    found: list[Tick] = []
    while (tick := ticks.after(found[-1].mark.seq if found else -1)) is not None:
        found.append(tick)
        ticks.let_go((), tick.mark.seq)
    return found


def told(ticks: list[Tick]) -> list[tuple[Any, ...]]:
    return [(tick.mark, tick.image.digest, tick.gap, tick.missed) for tick in ticks]


def seqs(ticks: list[Tick]) -> list[int]:
    return [tick.mark.seq for tick in ticks]


def live_ring(**options: Any) -> tuple[Any, LiveTicks]:
    ring = push_ring(18, 8, history=options.pop("history", 8), leases=2)
    return ring.writer(), LiveTicks(ring, **options)


def test_a_recording_is_read_as_far_as_it_is_asked_for() -> None:
    source = scripted(35)
    ticks = open_ticks(source)
    assert isinstance(ticks, RecordedTicks)
    assert ticks.newest() is None
    assert source.ring.stats["written"] == 0
    first = ticks.after(-1)
    assert first is not None
    assert (first.mark.seq, first.mark.captured_ns, first.gap, first.missed) == (0, 1000, "", 0)
    assert source.ring.stats["written"] == 1
    assert ticks.after(-1) is first
    assert ticks.get(0) is first
    tick = ticks.after(3)
    assert tick is not None
    assert tick.mark.seq == 10
    assert source.ring.stats["written"] == 11
    assert ticks.newest() is tick
    assert not ticks.over
    assert ticks.due_ns() is None
    assert (tick.image.pixels.planes[0] == picture(10)).all()


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


@settings(max_examples=30, deadline=None)
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


def test_a_writer_that_nobody_waits_for_is_survived() -> None:
    """Overruns depend on the machine; that they are told does not."""
    writer, live = live_ring(settings=Settings(every=3))

    def camera() -> None:
        for number in range(3000):
            push(writer, number)
        live.end()

    thread = threading.Thread(target=camera)
    thread.start()
    found: list[tuple[int, str, int]] = []  # no frames: the store must not fill up
    while not live.over:
        while (tick := live.after(found[-1][0] if found else -1)) is not None:
            seq = tick.mark.seq
            assert tick.image.digest == frame_digest(tick.image.pixels)
            assert (tick.image.pixels.planes[0] == picture(seq)).all()
            found.append((seq, tick.gap, tick.missed))
            live.let_go((), seq)
    thread.join()
    frames = live.stats.frames
    assert found[-1][0] == 2999
    assert frames.taken + frames.missing == 3000 - found[0][0]
    first = found[0][0]
    for (before, _, _), (seq, gap, missed) in pairwise(found):
        skipped = (seq - first) // 3 > (before - first) // 3 + 1
        assert bool(gap) == skipped
        assert bool(missed) == skipped


def test_an_overrun_is_told_and_counted() -> None:
    writer, live = live_ring(history=4)
    for number in range(5):
        push(writer, number)
    live.pump()
    for number in range(5, 60):
        push(writer, number)
    first, second = live.after(-1), live.after(0)
    assert first is not None
    assert second is not None
    assert first.gap == ""
    oldest = second.mark.seq
    assert oldest > 50
    assert (second.gap, second.missed) == ("frames never came", oldest - 5)
    assert live.stats.frames.missing == oldest - 5


def test_live_begins_with_the_newest_frame_or_where_it_is_told() -> None:
    ring = push_ring(18, 8, leases=2)
    writer = ring.writer()
    for number in range(6):
        push(writer, number)
    now, earlier = LiveTicks(ring), LiveTicks(ring, since=2)
    for ticks, first in ((now, 5), (earlier, 2)):
        tick = ticks.after(-1)
        assert tick is not None
        assert tick.mark.seq == first
        assert tick.gap == ""


def test_live_holds_no_slot_of_the_ring() -> None:
    writer, live = live_ring(settings=Settings(every=1))
    for number in range(8):
        push(writer, number)
    assert len(every_tick(live)) == 8
    assert live._reader.leases_out == 0


def test_the_end_is_said_of_what_the_loop_has_looked_at() -> None:
    """The loop asks after(), then over: a tick that comes between the two must not be taken for the end."""
    writer, live = live_ring()
    assert live.after(-1) is None
    push(writer, 0)
    live.end()
    assert not live.over
    assert live.after(-1) is not None
    assert live.over
    push(writer, 1)
    assert live.after(0) is None


def test_a_live_source_ends_and_fails_by_itself() -> None:
    for breaks in ("", "The camera broke off."):
        source = scripted(14, live=True, breaks=breaks)
        ticks = open_ticks(source, Settings(every=5))
        assert isinstance(ticks, LiveTicks)
        found: list[Tick] = []
        feed: Any = source._feed
        while feed.step() == "running":
            while (tick := ticks.after(found[-1].mark.seq if found else -1)) is not None:
                found.append(tick)
            assert not ticks.over
        assert seqs(every_tick(ticks))[-1] == 13
        assert ticks.over
        assert ticks.failure == breaks


def test_a_recording_that_breaks_off_ends_there() -> None:
    ticks = RecordedTicks(scripted(14, breaks="The disk went away."))
    found = every_tick(ticks)
    assert seqs(found) == [0, 10, 13]
    assert ticks.over
    assert ticks.failure == "The disk went away."
    assert (found[-1].image.pixels.planes[0] == picture(13)).all()
    assert ticks.get(13) is found[-1]


def test_let_go_frees_the_store() -> None:
    ticks = RecordedTicks(scripted(400), **small(1))
    planned = ticks.stats.bytes
    keep = {0, 5}
    for seq in range(300):
        tick = ticks.after(seq - 1)
        assert tick is not None
        ticks.let_go(keep, seq)
        assert ticks.stats.kept <= len(keep) + 1
    assert ticks.get(5).mark.seq == 5
    with pytest.raises(UsageError, match="let go"):
        ticks.get(6)
    assert ticks.stats.bytes == planned
    assert ticks.stats.refused == ticks.stats.dropped == 0


def test_a_recordings_reader_that_holds_everything_is_told_and_can_go_on() -> None:
    ticks = RecordedTicks(scripted(100), **small(1))
    for seq in range(HOLDS):
        assert ticks.after(seq - 1) is not None
    with pytest.raises(UsageError, match=f"All {HOLDS} frames"):
        ticks.after(HOLDS - 1)
    ticks.let_go((), HOLDS - 1)
    tick = ticks.after(HOLDS - 1)
    assert tick is not None
    assert (tick.mark.seq, tick.gap) == (HOLDS, "")
    assert (tick.image.pixels.planes[0] == picture(HOLDS)).all()


def test_somebody_else_who_steps_the_source_is_found_out() -> None:
    source = scripted(100)
    ticks = RecordedTicks(source, **small(1))
    with pytest.raises(UsageError, match="All"):
        for seq in range(100):
            ticks.after(seq - 1)
    ticks.let_go((), 99)
    assert source.step() is not None
    with pytest.raises(UsageError, match="somebody else"):
        ticks.after(99)


def test_a_backlog_is_thinned_and_told() -> None:
    writer, live = live_ring(**small(1))
    push(writer, 0)
    assert live.after(-1) is not None  # seen: it stays
    for number in range(1, 6):
        push(writer, number)
        live.pump()
    assert live.stats.dropped == 2
    assert live.stats.kept == 4
    found = [live.get(0), *every_tick_after(live, 0)]
    assert [(tick.mark.seq, tick.gap, tick.missed) for tick in found] == [
        (0, "", 0),
        (1, "", 0),
        (3, "the loop fell behind", 1),
        (5, "the loop fell behind", 1),
    ]


def test_nobody_knows_how_many_are_missing_when_the_source_lost_some_too() -> None:
    writer, live = live_ring(**small(1))
    for number in range(6):
        push(writer, number, gap=number in (2, 5))
        live.pump()
    assert [(tick.mark.seq, tick.gap, tick.missed) for tick in every_tick_after(live, -1)] == [
        (0, "", 0),
        (2, "the source lost frames; the loop fell behind", 0),
        (4, "the loop fell behind", 1),
        (5, "the source lost frames", 0),
    ]


def every_tick_after(ticks: Ticks, seq: int) -> list[Tick]:
    found: list[Tick] = []
    while (tick := ticks.after(found[-1].mark.seq if found else seq)) is not None:
        found.append(tick)
    return found


@settings(max_examples=30, deadline=None)
@given(every=st.integers(1, 4), frames=st.integers(1, 300), looks=st.sets(st.integers(0, 300), max_size=6))
def test_a_slow_loop_misses_nothing_silently(every: int, frames: int, looks: set[int]) -> None:
    writer, live = live_ring(**small(every))
    found: list[Tick] = []

    def look() -> None:
        if (tick := live.after(found[-1].mark.seq if found else -1)) is not None:
            found.append(tick)

    for number in range(frames):
        push(writer, number)
        live.pump()
        assert live.stats.kept <= HOLDS
        if number in looks:
            look()
    live.end()
    live.pump()
    while not found or live.after(found[-1].mark.seq) is not None:
        look()
    assert found[-1].mark.seq == frames - 1
    grid = set(range(0, frames, every)) | {frames - 1}
    assert set(seqs(found)) <= grid
    assert len(grid) == len(found) + live.stats.dropped
    before = -every
    for tick in found:
        skipped = sorted(seq for seq in grid if before < seq < tick.mark.seq)
        assert tick.missed == (tick.mark.seq - skipped[0] if skipped else 0)
        assert bool(tick.gap) == bool(skipped)
        assert (tick.image.pixels.planes[0] == picture(tick.mark.seq)).all()
        before = tick.mark.seq


def test_a_live_loop_that_holds_everything_loses_ticks_and_is_told() -> None:
    writer, live = live_ring(**small(1))
    held = []
    for number in range(HOLDS + 5):
        push(writer, number)
        held.append(live.after(number - 1))
    assert held[HOLDS:] == [None] * 5
    assert live.stats.refused == 5
    live.let_go((), HOLDS)
    assert live.stats.kept == 0
    push(writer, HOLDS + 5)
    assert live.after(HOLDS - 1) is None  # let go, and still in our hands
    held.clear()
    gc.collect()
    push(writer, HOLDS + 6)
    tick = live.after(HOLDS - 1)
    assert tick is not None
    assert (tick.mark.seq, tick.gap, tick.missed) == (HOLDS + 6, "no room to keep a frame", 6)


def test_the_last_frame_waits_for_room() -> None:
    writer, live = live_ring(**small(2))
    held = []
    for number in range(2 * HOLDS):
        push(writer, number)
        if number % 2 == 0:
            held.append(live.after(number - 1))
    assert None not in held
    live.end()
    last = 2 * HOLDS - 1
    for _ in range(3):
        assert live.after(last - 1) is None
        assert not live.over
    held.clear()
    live.let_go((), last)
    tick = live.after(last - 1)
    assert tick is not None
    assert (tick.mark.seq, tick.gap) == (last, "")
    assert live.over


def test_a_last_frame_that_was_refused_is_tried_again() -> None:
    writer, live = live_ring(**small(1))
    held = []
    for number in range(HOLDS + 3):
        push(writer, number)
        held.append(live.after(number - 1))
    last = HOLDS + 2
    assert held[HOLDS:] == [None] * 3
    live.end()
    assert live.after(HOLDS - 1) is None
    for number in (last + 1, last + 2):  # too late
        push(writer, number)
    held.clear()
    live.let_go((), last)
    tick = live.after(HOLDS - 1)
    assert tick is not None
    assert (tick.mark.seq, tick.gap, tick.missed) == (last, "no room to keep a frame", 2)
    assert live.after(last) is None
    assert live.over
    assert live.stats.refused == 2


def test_memory_that_is_not_enough_is_refused_at_opening() -> None:
    ring = push_ring(18, 8)
    with pytest.raises(UsageError, match=r"max_bytes = 10000 .* Lower one of them"):
        LiveTicks(ring, max_bytes=10_000)
    with pytest.raises(UsageError, match="at least 1"):
        LiveTicks(ring, backlog=0)


def test_a_digest_is_of_the_visible_picture_alone() -> None:
    def digest(ring: Any, *args: Any, **options: Any) -> str:
        ring.writer().push(*args, **options)
        return frame_digest(ring.reader(1).latest())

    luma = np.random.default_rng(0).integers(0, 256, (8, 18), np.uint8)
    wide = np.zeros((8, 40), np.uint8)
    wide[:, :18] = luma
    same = {digest(push_ring(18, 8, format="gray8"), luma), digest(push_ring(64, 64), wide[:, :18])}
    assert len(same) == 1
    other = luma.copy()
    other[7, 17] ^= 1
    about = {"format": "nv12", "width": 18, "height": 8}
    planes = [luma, np.zeros((4, 18), np.uint8)]
    assert len(next(iter(same))) == 32
    different = [
        *same,
        digest(push_ring(18, 8), other),
        digest(push_ring(18, 8), luma.reshape(18, 8)),
        digest(push_ring(18, 8), planes, **about),
        digest(push_ring(18, 8), planes, **about, matrix="bt709"),
        digest(push_ring(18, 8), planes, **about, range="full"),
    ]
    assert len(set(different)) == len(different)


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


def test_a_started_source_cannot_be_stepped(opened: Open, golden: Callable[[str], str]) -> None:
    source = opened(golden("h264.mp4"))
    source.start()
    with pytest.raises(UsageError):
        RecordedTicks(source).after(-1)


@pytest.mark.parametrize("name", ["h264.mp4", "h264.mkv", "h264.ts", "odd.avi", "redrawn.mov", "two_sizes.h264"])
@pytest.mark.parametrize("kind", ["truncated", "noisy"])
def test_damaged_files_end_in_order(opened: Open, tmp_path: Path, name: str, kind: str) -> None:
    data = bytearray((GOLDENS / name).read_bytes())
    chance = random.Random(7)
    if kind == "truncated":
        data = data[: len(data) * 2 // 3]
    else:
        for _ in range(64):
            data[chance.randrange(len(data) // 3, len(data))] ^= 1 << chance.randrange(8)
    path = tmp_path / f"damaged{Path(name).suffix}"
    path.write_bytes(data)
    try:
        source = opened(path)
    except CompassError:
        return  # nothing to read at all: said at opening
    ticks = RecordedTicks(source, Settings(every=5))
    found = every_tick(ticks)
    assert ticks.over
    stats = ticks.stats
    assert stats.frames.taken == source.stats.frames
    assert stats.frames.ticks == len(found)
    assert all(a < b for a, b in pairwise(seqs(found)))
    if found:
        assert ticks.get(found[-1].mark.seq).image.digest == frame_digest(found[-1].image.pixels)


def test_a_real_video(opened: Open) -> None:
    path = VIDEOS / "robomme" / "pick_red_2x.mp4"
    if not path.exists():
        pytest.skip("the shared videos are not here")
    first, second = (every_tick(RecordedTicks(opened(path))) for _ in range(2))
    assert [(tick.mark.seq, tick.image) for tick in first] == [(tick.mark.seq, tick.image) for tick in second]
    assert len({tick.image.digest for tick in first}) > len(first) // 2
    assert not any(tick.gap for tick in first)
