"""The parts of an engine that need no graph: rows of memory, kept features, prompts, positions."""

from __future__ import annotations

import numpy as np
import pytest

from compass_edge.engines.architecture import Decoder, Delta
from compass_edge.engines.onnx.feature_store import Features, FeatureStore
from compass_edge.engines.onnx.memory import Memory
from compass_edge.engines.onnx.positions import Grid, positions
from compass_edge.engines.onnx.prompt import expand
from compass_edge.engines.onnx.rows import Rows
from compass_edge.engines.onnx.session import Options
from compass_edge.errors import UsageError
from compass_edge.models import Image


def memory_of(rows: int, *, recurrent: bool = False) -> Memory:
    delta = Delta(key_heads=1, value_heads=1, key=2, value=2, kernel=2) if recurrent else None
    decoder = Decoder(hidden=4, mlp=4, heads=1, kv_heads=1, head=4, vocabulary=9, epsilon=1e-6, theta=1e4, rotary=4,
                      sections=(1, 1, 0), interleaved=False, mixers=("delta", "attention") if recurrent else ("attention",),
                      delta=delta)  # fmt: skip
    return Memory(decoder, rows, context=32, half=False)


class Reader:
    """Stands in for a decoder: what it writes at a place is the token that is there, and a state is the sum of all so far."""

    def __init__(self, rows: int, *, recurrent: bool = False, snapshots: int = 99) -> None:
        self.memory = memory_of(rows, recurrent=recurrent)
        self.rows = Rows(self.memory, snapshots * max(self.memory.snapshot_bytes, 1))

    def read(self, *keys: int, stops: tuple[int, ...] = (), row: int | None = None) -> tuple[int, int]:
        """Where, and how many tokens it began behind. Checks that the memory then holds these keys and nothing else."""
        wanted = np.array(keys, np.int64)
        row, start, _ = self.rows.begin(wanted, len(keys) - 1, row)
        began = start
        for stop in (*[stop for stop in stops if stop > start], len(keys)):
            for cache in self.memory.cache.values():
                cache[row, 0, start:stop] = wanted[start:stop, None]
            for state in self.memory.states.values():
                state[row] += wanted[start:stop].sum()
            self.rows.extend(row, wanted[start:stop])
            self.rows.remember(row)
            start = stop
        for cache in self.memory.cache.values():
            np.testing.assert_array_equal(cache[row, 0, : len(keys), 0], wanted)
        for state in self.memory.states.values():
            assert (state[row] == wanted.sum()).all()
        assert self.rows.length(row) == len(keys)
        return row, began


# Rows


def test_a_prompt_goes_on_behind_what_a_row_holds() -> None:
    reader = Reader(2)
    assert reader.read(1, 2, 3, 4, 5) == (0, 0)
    assert reader.read(1, 2, 3, 4, 5) == (0, 4)  # the last token is always read: its output is wanted
    assert reader.read(1, 2, 3, 7) == (0, 3)  # in place: two are lost, three are lent
    assert reader.rows.reused == 7


def test_a_row_that_would_lose_more_than_it_lends_is_copied_from() -> None:
    reader = Reader(2)
    reader.read(1, 2, 3, 4, 5)
    assert reader.read(1, 2, 9, 9) == (1, 2)
    np.testing.assert_array_equal(reader.memory.cache["0.key"][0, 0, :5, 0], [1, 2, 3, 4, 5])
    assert reader.read(1, 2, 3, 4, 6) == (0, 4)  # it is still there


def test_the_row_unused_for_longest_goes() -> None:
    reader = Reader(3)
    for first in (10, 20, 30):
        reader.read(first, first, first)
    reader.read(10, 10, 11)
    assert reader.read(40, 40) == (1, 0)
    assert reader.read(10, 10, 11) == (0, 2)
    assert reader.read(20, 20, 20) == (2, 0)


def test_neighbouring_rows_for_a_batch() -> None:
    reader = Reader(4)
    reader.read(1, 1, row=0)
    reader.read(2, 2, row=1)
    assert reader.rows.free(2) == 2
    reader.read(3, 3, row=2)
    assert reader.rows.free(2) == 0
    assert reader.rows.free(4) == 0
    assert reader.read(3, 3, 3, row=0) == (0, 2)  # from row 2, which keeps it
    np.testing.assert_array_equal(reader.memory.cache["0.key"][2, 0, :2, 0], [3, 3])


def test_a_row_that_was_broken_off_lends_nothing() -> None:
    reader = Reader(2, recurrent=True)
    reader.read(1, 2, 3, 4, stops=(2,))
    reader.rows.forget(0)
    assert not reader.rows._snapshots  # their bytes are free
    assert reader.read(1, 2, 3, 4)[1] == 0
    reader.rows.forget_all()
    assert reader.rows.reused == 0
    assert reader.rows.length(0) == 0


def test_states_begin_only_where_a_snapshot_was_taken() -> None:
    reader = Reader(2, recurrent=True)
    reader.read(1, 2, 3, 4, 5, stops=(2, 4))
    assert reader.read(1, 2, 3, 9) == (1, 2)
    assert reader.read(1, 2, 3, 9, 9) == (1, 4)  # behind all that it holds
    keys = np.array([1, 2, 3, 8, 8])
    row, start, shared = reader.rows.begin(keys, 4)
    assert (row, start, shared) == (0, 2, 3)  # one more would have been shared: a snapshot belongs there


def test_snapshots_are_bounded() -> None:
    reader = Reader(4, recurrent=True, snapshots=3)
    dice = np.random.default_rng(0)
    for _ in range(200):
        keys = dice.integers(0, 2, dice.integers(2, 12)).tolist()
        reader.read(*keys, stops=tuple(sorted(set(dice.integers(1, len(keys), 2).tolist()))))
        assert len(reader.rows._snapshots) <= 3
    assert reader.rows.reused > 50


def test_without_room_for_a_snapshot_everything_is_read() -> None:
    reader = Reader(2, recurrent=True, snapshots=0)
    reader.read(1, 2, 3, stops=(2,))
    assert reader.read(1, 2, 3) == (1, 0)


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_thousand_prompts_are_each_what_they_should_be(recurrent: bool) -> None:
    """Like words of two letters, they share beginnings all the time; the reader checks the memory after each."""
    reader = Reader(3, recurrent=recurrent, snapshots=6)
    dice = np.random.default_rng(1)
    for _ in range(1000):
        keys = dice.integers(0, 2, dice.integers(1, 16)).tolist()
        row = int(dice.integers(3)) if dice.random() < 0.2 else None
        reader.read(*keys, stops=tuple(sorted(set(dice.integers(1, len(keys) + 1, 2).tolist()) - {len(keys)})), row=row)
        if dice.random() < 0.05:
            reader.rows.forget(int(dice.integers(3)))
    assert reader.rows.reused > 500


# Features


def features(size: int) -> Features:
    return Features(np.zeros((1, size), np.uint8), None, 1, 1)


def test_features_are_kept_up_to_their_bytes() -> None:
    store = FeatureStore(100)
    for name in "abc":
        store.put(("tower", name), features(40))
    assert (len(store), store.bytes) == (2, 80)
    assert store.get(("tower", "a")) is None
    assert store.get(("tower", "b")) is not None  # now c is the one unused for longest
    store.put(("tower", "d"), features(60))
    assert [store.get(("tower", name)) is not None for name in "bcd"] == [True, False, True]
    store.put(("tower", "huge"), features(101))
    assert store.get(("tower", "huge")) is None
    assert store.get(("tower", "d")) is not None
    assert store.get(("other tower", "d")) is None
    store.put(("tower", "d"), features(1))  # it is there already
    assert store.bytes == 100


def test_a_store_of_nothing_keeps_nothing() -> None:
    store = FeatureStore(0)
    store.put(("tower", "a"), features(1))
    assert (len(store), store.bytes) == (0, 0)


def test_taps_count_too() -> None:
    assert Features(np.zeros((2, 4), np.float32), np.zeros((3, 2, 4), np.float32), 1, 2).nbytes == 4 * 8 * 4


# Prompts and positions

IMAGE = 99


def test_an_image_takes_as_many_tokens_as_its_grid() -> None:
    prompt = expand([1, IMAGE, 2, 3], IMAGE, [Image("a")], lambda image: (2, 3))
    assert prompt.ids.tolist() == [1, *[IMAGE] * 6, 2, 3]
    assert [(picture.start, picture.end) for picture in prompt.pictures] == [(1, 7)]
    assert prompt.positions.tolist() == [
        [0, 1, 1, 1, 1, 1, 1, 4, 5],  # time
        [0, 1, 1, 1, 2, 2, 2, 4, 5],  # rows
        [0, 1, 2, 3, 1, 2, 3, 4, 5],  # columns
    ]
    assert prompt.next_position == 6
    assert len(prompt.until(8)) == 8
    assert prompt.until(1).pictures == ()


def test_keys_tell_pictures_apart_and_never_look_like_words() -> None:
    def keys(*names: str) -> list[int]:
        ids = [token for name in names for token in (5, IMAGE)]
        return expand(ids, IMAGE, [Image(name) for name in names], lambda image: (2, 2)).keys.tolist()

    assert keys("a", "b")[:5] == keys("a", "c")[:5]
    assert set(keys("a", "b")[6:]).isdisjoint(keys("a", "c")[6:])
    assert keys("a", "a")[1:5] == keys("a", "a")[6:]
    found = keys(*(str(number) for number in range(500)))
    words, pictures = [key for key in found if key >= 0], [key for key in found if key < 0]
    assert words == [5] * 500
    assert len(set(pictures)) == 500 * 4  # each token of each
    assert min(pictures) > -(2**63)


def test_a_prompt_without_pictures() -> None:
    prompt = expand([7, 8, 9], IMAGE, [], lambda image: (1, 1))
    assert prompt.ids.tolist() == prompt.keys.tolist() == [7, 8, 9]
    assert prompt.positions.tolist() == [[0, 1, 2]] * 3
    with pytest.raises(AssertionError):
        expand([7, IMAGE], IMAGE, [], lambda image: (1, 1))


def test_positions_of_a_video_and_of_words_behind_it() -> None:
    made, following = positions([2, Grid(2, 1, 2, stride=2.5), 1])
    assert made.tolist() == [[0, 1, 2, 2, 4, 4, 4], [0, 1, 2, 2, 2, 2, 4], [0, 1, 2, 3, 2, 3, 4]]
    assert following == 5
    made, following = positions([], start=3)
    assert (made.shape, following) == ((3, 0), 3)


# Options


@pytest.mark.parametrize(
    "wrong",
    [{"context": 63}, {"batch": 0}, {"prefixes": -1}, {"vision_bytes": 1.5}, {"threads": 0}, {"device": "tpu"}],
)
def test_options_that_make_no_sense(wrong: dict[str, object]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=name):
        Options(**wrong)  # type: ignore[arg-type]
