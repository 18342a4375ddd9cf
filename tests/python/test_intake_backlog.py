"""A loop that is slower than its ticks: what waits is thinned, and nothing is lost silently."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_samples import HOLDS, every_tick_after, live_ring, picture, push, seqs, small

from compass_edge.errors import UsageError
from compass_edge.frames.source import push_ring
from compass_edge.loop.intake import LiveTicks
from compass_edge.loop.ticks import Tick


def test_a_backlog_is_thinned_and_told() -> None:
    writer, live = live_ring(**small(1))
    push(writer, 0)
    assert live.after(-1) is not None
    live.let_go((), 0, 0)  # used: it stays
    for number in range(1, 6):
        push(writer, number)
        assert live.newest() is not None
        assert live.after(number - 1) is not None  # looked at, but not used
    assert live.stats.dropped == 2
    assert live.stats.kept == 4
    found = [live.get(0), *every_tick_after(live, 0)]
    assert [(tick.mark.seq, tick.gap, tick.missed) for tick in found] == [
        (0, "", 0),
        (1, "", 0),
        (3, "the loop fell behind", 1),
        (5, "the loop fell behind", 1),
    ]


def test_ticks_are_dropped_between_two_passes_only() -> None:
    """What a pass got from after() can be had from get() until it is through, whatever comes meanwhile."""
    writer, live = live_ring(**small(1))
    for number in range(HOLDS):
        push(writer, number)
        assert live.after(number - 1) is not None
    assert [live.get(number).mark.seq for number in range(HOLDS)] == list(range(HOLDS))
    assert not live.over
    assert live.stats.dropped == 0
    live.let_go((), 3, 3)
    assert [tick.mark.seq for tick in every_tick_after(live, 3)] == [11, 19, 27]
    assert live.get(3).mark.seq == 3
    assert live.stats.dropped == HOLDS - 7
    assert [tick.missed for tick in every_tick_after(live, 3)] == [7, 7, 7]


def test_the_end_drops_nothing_that_a_pass_has_seen() -> None:
    """A look ahead that comes to the end of the stream asks newest() which frame was the last, and goes on."""
    writer, live = live_ring(**small(1))
    for number in range(HOLDS):
        push(writer, number)
        assert live.after(number - 1) is not None
    live.end()
    assert live.after(HOLDS - 1) is None
    assert live.over
    assert live.newest() is live.get(HOLDS - 1)
    assert [live.get(number).mark.seq for number in range(HOLDS)] == list(range(HOLDS))


def test_ticks_wait_again_when_the_next_step_begins_before_them() -> None:
    """V accepts a frame before the last that was used: those after it are the next step's."""
    writer, live = live_ring(**small(1))
    for number in range(9):
        push(writer, number)
        assert live.newest() is not None
        live.let_go((), 0, number)
    assert live.stats.dropped == 0
    live.let_go((), 2, 2)
    assert [tick.mark.seq for tick in every_tick_after(live, 2)] == [4, 6, 8]
    assert live.stats.dropped == 3


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


@settings(max_examples=30)
@given(every=st.integers(1, 4), frames=st.integers(1, 300), looks=st.sets(st.integers(0, 300), max_size=6))
def test_a_slow_loop_misses_nothing_silently(every: int, frames: int, looks: set[int]) -> None:
    writer, live = live_ring(**small(every))
    found: list[Tick] = []

    def look() -> None:
        if (tick := live.after(found[-1].mark.seq if found else -1)) is not None:
            found.append(tick)
            live.let_go((), tick.mark.seq, tick.mark.seq)

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
    live.let_go((), 0, HOLDS)
    for number in range(HOLDS + 5):
        push(writer, number)
        held.append(live.after(number - 1))
    assert held[HOLDS:] == [None] * 5
    assert live.stats.refused == 5
    live.let_go((), HOLDS, HOLDS)
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
    live.let_go((), last, last)
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
    live.let_go((), last, last)
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
