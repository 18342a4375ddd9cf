"""The intake of a ring: what the writer overran is told, and the end is said of what was looked at."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import pytest
from intake_samples import every_tick, live_ring, picture, push, scripted, seqs, small

from compass_edge.errors import UsageError
from compass_edge.frames.source import push_ring
from compass_edge.loop.intake import LiveTicks, open_ticks
from compass_edge.loop.settings import Settings
from compass_edge.loop.shelf import frame_digest
from compass_edge.loop.ticks import Tick
from compass_edge.models import Image


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
            live.let_go((), seq, seq)
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


def test_newest_reads_the_ring_and_never_hides_a_tick_behind_the_end() -> None:
    writer, live = live_ring(settings=Settings(every=1))
    for number in range(3):
        push(writer, number)
        newest = live.newest()
        assert newest is not None
        assert newest.mark.seq == number
    assert live.after(2) is None
    push(writer, 3)
    live.end()
    assert live.newest() is not None
    assert not live.over  # tick 3 came by way of newest(): after() has not looked at it
    assert live.after(2) is not None
    assert live.after(3) is None
    assert live.over


def test_the_end_shows_even_if_only_newest_is_asked() -> None:
    """The scheduler waits for a tick or the end that way."""
    writer, live = live_ring(settings=Settings(every=1))
    push(writer, 0)
    assert live.after(-1) is not None
    assert live.after(0) is None
    assert not live.over
    live.end()
    assert live.newest() is not None
    assert live.over


def test_frames_are_numbered_from_where_the_episode_was() -> None:
    ring = push_ring(18, 8, leases=2)
    writer = ring.writer()
    live = LiveTicks(ring, **small(2), numbered_from=101)
    found: list[Tick] = []
    for number in range(60):
        push(writer, number)
        if (tick := live.after(found[-1].mark.seq if found else -1)) is not None:
            found.append(tick)
            live.let_go((), tick.mark.seq, tick.mark.seq)
            assert (tick.image.pixels.planes[0] == picture(number)).all()
            assert live.get(tick.mark.seq) is tick
            tick = None
            found[-1] = Tick(found[-1].mark, Image(""))  # holds no frame
    live.end()
    assert [tick.mark.seq for tick in found] == list(range(101, 161, 2))
    last = live.after(159)
    assert last is not None
    assert last.mark.seq == 160
    assert (last.image.pixels.planes[0] == picture(59)).all()
    assert live.stats.kept == 2
    assert live.stats.refused == 0
    with pytest.raises(UsageError, match="numbered from 0"):
        LiveTicks(ring, numbered_from=-1)


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
