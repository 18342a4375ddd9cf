"""The intake of a recording: read as far as it is asked for, the same ticks in every run."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDENS, VIDEOS
from intake_samples import HOLDS, every_tick, picture, scripted, seqs, small, told

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.source import Source, push_ring
from compass_edge.loop.intake import RecordedTicks, open_ticks
from compass_edge.loop.settings import Settings
from compass_edge.loop.shelf import frame_digest

Open = Callable[..., Source]


def test_a_recording_is_read_as_far_as_it_is_asked_for() -> None:
    source = scripted(35)
    ticks = open_ticks(source)
    assert isinstance(ticks, RecordedTicks)
    assert ticks.newest() is None
    assert source.ring.stats["written"] == 0
    first = ticks.after(-1)
    assert first is not None
    assert (first.mark.seq, first.mark.captured_ns, first.gap, first.missed) == (0, 0, "", 0)
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


def test_a_mark_has_the_recordings_time_not_the_clocks() -> None:
    def times(**options: Any) -> list[int]:
        ticks = every_tick(RecordedTicks(scripted(6, **options), Settings(every=1)))
        return [tick.mark.captured_ns // 1_000_000 for tick in ticks]

    assert times() == [0, 50, 100, 150, 200, 250]
    assert times(untimed=(2, 3), frame_rate=100.0) == [0, 50, 60, 70, 200, 250]
    assert times(untimed=range(6), frame_rate=10.0) == [0, 100, 200, 300, 400, 500]
    assert times(untimed=range(6)) == [0, 33, 66, 99, 133, 166]


def test_a_recording_that_was_cut_off_says_so_at_its_end() -> None:
    ticks = RecordedTicks(scripted(14, truncated=True))
    assert ticks.after(-1) is not None
    assert ticks.failure == ""
    assert seqs(every_tick(ticks)) == [0, 10, 13]
    assert "'script' ends before the frames that it promises" in ticks.failure


def test_a_look_far_ahead_needs_no_room_for_what_lies_between() -> None:
    """O looks again after a while: nothing before that will be used."""
    ticks = RecordedTicks(scripted(400), **small(1))
    assert ticks.after(-1) is not None
    ticks.let_go({0}, 0, 0)
    for _ in range(2):
        tick = ticks.after(299)
        assert tick is not None
        assert tick.mark.seq == 300
    assert ticks.get(0).mark.seq == 0


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
        ticks.let_go(keep, seq, seq)
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
    ticks.let_go((), HOLDS - 1, HOLDS - 1)
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
    ticks.let_go((), 99, 99)
    assert source.step() is not None
    with pytest.raises(UsageError, match="somebody else"):
        ticks.after(99)


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
    assert bool(ticks.failure) == source.stats.truncated
    assert stats.frames.ticks == len(found)
    assert all(a < b for a, b in pairwise(seqs(found)))
    if found:
        assert ticks.get(found[-1].mark.seq).image.digest == frame_digest(found[-1].image.pixels)


def test_a_real_video(opened: Open) -> None:
    path = VIDEOS / "robomme" / "pick_red_2x.mp4"
    if not path.exists():
        pytest.skip("the shared videos are not here")
    first, second = (every_tick(RecordedTicks(opened(path))) for _ in range(2))
    assert told(first) == told(second)
    assert len({tick.image.digest for tick in first}) > len(first) // 2
    assert not any(tick.gap for tick in first)
