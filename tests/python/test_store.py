"""FrameStore in Python: every n-th frame of an episode and pinned ones, in a fixed amount of memory."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.source import push_ring

core = native()


class Camera:
    """Frames whose pixels say their number."""

    def __init__(self) -> None:
        self.ring = push_ring(16, 8, history=2, leases=2)
        self.writer, self.reader = self.ring.writer(), self.ring.reader(2)

    def frame(self) -> Any:
        seq = self.ring.stats["written"]
        self.writer.push(np.full((8, 16, 3), seq % 256, np.uint8), pts=seq)
        return self.reader.latest()


def store_of(camera: Camera, **options: Any) -> Any:
    return core.FrameStore(camera.ring.frame_bytes, **options)


def test_every_tenth_frame_is_kept_and_stays() -> None:
    camera = Camera()
    store = store_of(camera)
    store.begin(0)
    kept = [seq for seq in range(100) if store.offer(camera.frame())]
    assert kept == list(range(0, 100, 10)) == store.sequence_numbers
    for seq in kept:
        frame = store.get(seq)
        assert frame.pts == seq
        assert (frame.planes[0] == seq).all()
        assert not frame.planes[0].flags.writeable
    assert store.get(5) is None
    assert store.stats["kept"] == 10


def test_a_long_episode_is_thinned_evenly() -> None:
    camera = Camera()
    store = store_of(camera, every=1, max_frames=8)
    store.begin(0)
    for _ in range(500):
        store.offer(camera.frame())
    kept = store.sequence_numbers
    assert 4 <= len(kept) <= 8
    assert kept[0] == 0
    assert set(np.diff(kept)) == {store.stats["stride"]}
    assert store.stats["thinned"] > 0


def test_pins_stay_through_thinning_and_are_bounded() -> None:
    camera = Camera()
    store = store_of(camera, every=1, max_frames=4, max_pins=2)
    store.begin(0)
    for seq in range(50):
        frame = camera.frame()
        store.offer(frame)
        if seq in (3, 7):
            store.pin(frame)
    assert store.get(3).pts == 3
    assert store.get(7).pts == 7
    with pytest.raises(UsageError, match="pin"):
        store.pin(camera.frame())
    store.unpin(3)
    store.unpin(3)
    store.unpin(10**9)
    assert store.get(3) is None
    store.pin(camera.frame())
    assert store.stats["pinned"] == 2


def test_a_new_episode_starts_empty_and_held_frames_live_on() -> None:
    camera = Camera()
    store = store_of(camera, every=1, max_frames=4)
    store.begin(0)
    store.offer(camera.frame())
    held = store.get(0)
    store.begin(1)
    assert store.sequence_numbers == []
    for _ in range(20):
        store.offer(camera.frame())
    assert (held.planes[0] == 0).all()
    view = held.planes[0]
    del held, store
    gc.collect()
    assert (view == 0).all()


def test_readers_that_hold_everything_make_it_refuse_and_not_overwrite() -> None:
    camera = Camera()
    store = store_of(camera, every=1, max_frames=4, max_pins=1)
    store.begin(0)
    held = []
    for seq in range(200):
        store.offer(camera.frame())
        if (frame := store.get(seq)) is not None:
            held.append(frame)
    for frame in held:
        assert (frame.planes[0] == frame.pts % 256).all()
    assert store.stats["refused"] > 0
    before = store.stats["bytes"]
    del held, frame
    gc.collect()
    assert store.stats["bytes"] == before


@pytest.mark.parametrize(
    "options",
    [
        {"max_bytes": 100},
        {"max_frames": 0},
        {"max_frames": -1},
        {"every": 0},
        {"max_pins": -1},
    ],
)
def test_stores_that_cannot_work(options: dict[str, Any]) -> None:
    camera = Camera()
    try:
        store = store_of(camera, **options)
    except CompassError:
        return
    store.begin(0)  # taken as the nearest sensible setting: it must then work
    for _ in range(5):
        store.offer(camera.frame())


def test_the_budget_caps_the_frames() -> None:
    camera = Camera()
    budget = 20 * camera.ring.frame_bytes
    store = store_of(camera, max_bytes=budget, max_pins=2)
    assert 2 <= store.max_frames < 20
    assert store.stats["bytes"] <= budget


def test_wrong_objects_are_refused() -> None:
    camera = Camera()
    store = store_of(camera)
    for call in (store.offer, store.pin):
        with pytest.raises(TypeError):
            call(None)
        frame = camera.frame()
        frame.release()
        with pytest.raises(UsageError, match="released"):
            call(frame)
    with pytest.raises(TypeError):
        store.get(-1)


@settings(max_examples=40, deadline=None)
@given(
    every=st.integers(1, 5),
    max_frames=st.integers(2, 6),
    actions=st.lists(st.sampled_from(["offer", "skip", "pin", "unpin", "hold", "drop", "begin"]), max_size=60),
)
def test_any_order_of_calls_keeps_the_promises(every: int, max_frames: int, actions: list[str]) -> None:
    camera = Camera()
    store = store_of(camera, every=every, max_frames=max_frames, max_pins=2)
    store.begin(0)
    held: list[Any] = []
    pinned: list[int] = []
    seq = -1
    for action in actions:
        if action in ("offer", "skip", "pin"):
            frame = camera.frame()
            seq = frame.seq
            if action == "offer":
                store.offer(frame)
            elif action == "pin" and len(pinned) < 2:
                try:
                    store.pin(frame)
                    pinned.append(seq)
                except UsageError:
                    assert held  # only readers that hold every buffer may be in the way
            del frame
        elif action == "unpin" and pinned:
            store.unpin(pinned.pop(0))
        elif action == "hold" and store.sequence_numbers:
            held.append(store.get(store.sequence_numbers[0]))
        elif action == "drop" and held:
            held.pop(0)
        elif action == "begin":
            store.begin(seq + 1)
            pinned = []
        assert store.stats["kept"] <= max_frames
        assert store.sequence_numbers == sorted(set(store.sequence_numbers))
        for frame in (*held, *(store.get(kept) for kept in store.sequence_numbers)):
            assert (frame.planes[0] == frame.pts % 256).all()
