"""The sampler: cells, gaps and counters, for frames in any order."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import UsageError
from compass_edge.loop.mark import Mark
from compass_edge.loop.sampler import Sampled, Sampler, SamplerStats


def ticks(sampler: Sampler, numbers: list[int], flagged: tuple[int, ...] = ()) -> list[Sampled]:
    found = (sampler.offer(seq, seq * 1000, seq in flagged) for seq in numbers)
    return [tick for tick in found if tick is not None]


def seqs(sampled: list[Sampled]) -> list[int]:
    return [tick.mark.seq for tick in sampled]


def test_every_tenth_frame_counted_from_the_first() -> None:
    sampler = Sampler(10)
    assert ticks(sampler, list(range(7, 40))) == [Sampled(Mark(seq, seq * 1000)) for seq in (7, 17, 27, 37)]
    assert sampler.stats == SamplerStats(offered=33, ticks=4)


def test_every_frame() -> None:
    assert seqs(ticks(Sampler(1), [3, 4, 5])) == [3, 4, 5]


def test_frames_missing_inside_a_cell_are_counted_only() -> None:
    sampler = Sampler(10)
    found = ticks(sampler, [0, 1, 8, 9, 13, 14, 20])
    assert seqs(found) == [0, 13, 20]
    assert all(tick.gap == "" and tick.missed == 0 for tick in found)
    assert sampler.stats.missing == 6 + 3 + 5


def test_a_cell_without_a_tick_is_told() -> None:
    sampler = Sampler(10)
    found = ticks(sampler, [*range(6), 26, 27, 30])
    assert seqs(found) == [0, 26, 30]
    assert found[1] == Sampled(Mark(26, 26000), "frames never came", 20)
    assert found[2].gap == ""
    assert sampler.stats.missing == 20 + 2


def test_a_gap_of_the_source_is_told_with_the_next_tick() -> None:
    found = ticks(Sampler(10), list(range(31)), flagged=(0, 14, 16))
    assert [(tick.mark.seq, tick.gap, tick.missed) for tick in found] == [
        (0, "the source lost frames", 0),
        (10, "", 0),
        (20, "the source lost frames", 0),
        (30, "", 0),
    ]


def test_with_a_reported_gap_nobody_knows_how_many_are_missing() -> None:
    found = ticks(Sampler(10), [0, 1, 42], flagged=(42,))
    assert found[1] == Sampled(Mark(42, 42000), "frames never came; the source lost frames", 0)


def test_the_last_frame_is_a_tick_once() -> None:
    sampler = Sampler(10)
    assert sampler.end() is None
    ticks(sampler, list(range(14)), flagged=(12,))
    assert sampler.end() == Sampled(Mark(13, 13000), "the source lost frames", 0)
    assert sampler.end() is None
    assert sampler.stats.ticks == 3
    on_the_grid = Sampler(10)
    ticks(on_the_grid, list(range(11)))
    assert on_the_grid.end() is None


def test_duplicates_late_frames_and_a_clock_that_goes_back() -> None:
    sampler = Sampler(2)
    for seq, captured_ns in [(4, 50), (4, 50), (3, 40), (5, 60), (6, 55), (6, 54), (5, 1), (7, 70)]:
        sampler.offer(seq, captured_ns)
    assert sampler.stats == SamplerStats(offered=8, ticks=2, duplicates=2, late=2, clock_back=1)
    again = Sampler(1)
    again.offer(0, 100)
    assert again.offer(1, 90) == Sampled(Mark(1, 90))


@pytest.mark.parametrize("every", [0, -1])
def test_no_tick_at_all_is_refused(every: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Sampler(every)


@settings(max_examples=300)
@given(
    every=st.integers(1, 12),
    offers=st.lists(st.tuples(st.integers(0, 120), st.integers(0, 50), st.booleans()), max_size=150),
)
def test_any_order_of_frames(every: int, offers: list[tuple[int, int, bool]]) -> None:
    check(every, offers)


@settings(max_examples=200)
@given(every=st.integers(1, 12), chance=st.randoms(use_true_random=False), frames=st.integers(1, 150))
def test_a_stream_with_drops_repeats_and_swaps(every: int, chance: random.Random, frames: int) -> None:
    numbers = [seq for seq in range(frames) for _ in range(chance.choice((0, 1, 1, 1, 2)))]
    for _ in range(frames // 10):
        if len(numbers) > 1:
            at = chance.randrange(len(numbers) - 1)
            numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]
    check(every, [(seq, seq, False) for seq in numbers])


def check(every: int, offers: list[tuple[int, int, bool]]) -> None:
    sampler = Sampler(every)
    found = [tick for offer in offers if (tick := sampler.offer(*offer)) is not None]
    stats = sampler.stats
    assert stats.offered == len(offers)
    assert stats.ticks == len(found)
    assert all(a < b for a, b in pairwise(seqs(found)))
    if not offers:
        return
    first, last = offers[0][0], max(seq for seq, _, _ in offers)
    cells = [(seq - first) // every for seq in seqs(found)]
    assert len(set(cells)) == len(cells)
    assert stats.taken + stats.missing == last - first + 1
    assert found[0].mark == Mark(*offers[0][:2])
    for before, tick in pairwise(found):
        lost_cell = (tick.mark.seq - first) // every > (before.mark.seq - first) // every + 1
        assert ("frames never came" in tick.gap) == lost_cell
        assert tick.missed < tick.mark.seq - before.mark.seq
    final = sampler.end()
    assert (final is None) == (found[-1].mark.seq == last)
    if final is not None:
        assert final.mark.seq == last
