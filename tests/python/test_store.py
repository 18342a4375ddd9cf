"""FrameStore in Python: copies of frames by their numbers, in a fixed amount of memory."""

from __future__ import annotations

import contextlib
import gc
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import UsageError
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


def test_a_kept_frame_outlives_the_ring() -> None:
    camera = Camera()
    store = store_of(camera)
    for seq in range(100):
        frame = camera.frame()
        if seq % 10 == 0:
            assert store.keep(frame)
            assert store.keep(frame)
        del frame
    assert store.sequence_numbers == list(range(0, 100, 10))
    assert camera.reader.get(30) is None
    for seq in store.sequence_numbers:
        frame = store.get(seq)
        assert frame.pts == seq
        assert (frame.planes[0] == seq).all()
        assert not frame.planes[0].flags.writeable
    assert store.get(5) is None
    assert store.stats["kept"] == 10


def test_a_full_store_refuses_and_never_overwrites() -> None:
    camera = Camera()
    store = store_of(camera, max_frames=4)
    planned = store.stats["bytes"]
    kept = [store.keep(camera.frame()) for _ in range(10)]
    assert kept == [True] * 4 + [False] * 6
    assert store.stats == {"kept": 4, "refused": 6, "bytes": planned}
    store.drop(2)
    store.drop(2)
    store.drop(10**9)
    assert store.keep(camera.frame())
    assert store.sequence_numbers == [0, 1, 3, 10]
    assert store.stats == {"kept": 4, "refused": 6, "bytes": planned}


def test_held_frames_survive_drop_clear_and_the_store() -> None:
    camera = Camera()
    store = store_of(camera, max_frames=2)
    store.keep(camera.frame())
    store.keep(camera.frame())
    dropped, cleared = store.get(0), store.get(1)
    store.drop(0)
    store.clear()
    assert store.sequence_numbers == []
    assert not store.keep(camera.frame())  # both buffers are in our hands
    dropped.release()
    assert store.keep(camera.frame())
    view = cleared.planes[0]
    del cleared, dropped, store
    gc.collect()
    assert (view == 1).all()


@pytest.mark.parametrize("options", [{"max_bytes": 100}, {"max_frames": 0}, {"max_frames": -1}])
def test_stores_that_cannot_work(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="at least"):
        store_of(Camera(), **options)


def test_the_budget_caps_the_frames() -> None:
    camera = Camera()
    budget = 20 * camera.ring.frame_bytes
    store = store_of(camera, max_bytes=budget)
    assert store.max_frames == 20
    assert store.stats["bytes"] == budget


def test_wrong_objects_are_refused() -> None:
    camera = Camera()
    store = store_of(camera)
    with pytest.raises(TypeError):
        store.keep(None)
    frame = camera.frame()
    frame.release()
    with pytest.raises(UsageError, match="released"):
        store.keep(frame)
    for call in (store.get, store.drop):
        with pytest.raises(TypeError):
            call(-1)
    with pytest.raises(UsageError, match="frame_bytes"):
        core.FrameStore(64, max_frames=2).keep(camera.frame())


def test_threads_keep_read_and_drop_at_once() -> None:
    camera = Camera()
    store = store_of(camera, max_frames=16)
    done, torn = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            for seq in store.sequence_numbers:
                with store.get(seq) or contextlib.nullcontext() as frame:
                    if frame is not None and not (frame.planes[0] == seq % 256).all():
                        torn.append(seq)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for seq in range(2000):
        store.keep(camera.frame())
        if seq >= 4:
            store.drop(seq - 4)
    done.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert store.sequence_numbers == [1996, 1997, 1998, 1999]
    assert store.stats["refused"] == 0


@settings(max_examples=40)
@given(
    max_frames=st.integers(1, 6),
    actions=st.lists(st.sampled_from(["keep", "skip", "hold", "release", "drop", "clear"]), max_size=60),
)
def test_any_order_of_calls_keeps_the_promises(max_frames: int, actions: list[str]) -> None:
    camera = Camera()
    store = store_of(camera, max_frames=max_frames)
    held: list[Any] = []
    expected: list[int] = []
    refused = 0
    for action in actions:
        if action == "keep":
            frame = camera.frame()
            in_use = len({*expected, *(one.seq for one in held)})
            room = in_use < max_frames
            assert store.keep(frame) == room
            refused += not room
            expected += [frame.seq] if room else []
            del frame
        elif action == "skip":
            camera.frame()
        elif action == "hold" and expected:
            held.append(store.get(expected[0]))
        elif action == "release" and held:
            held.pop(0)
        elif action == "drop" and expected:
            store.drop(expected.pop(0))
        elif action == "clear":
            store.clear()
            expected = []
        assert store.sequence_numbers == expected
        assert store.stats["kept"] == len(expected)
        assert store.stats["refused"] == refused
        for frame in (*held, *(store.get(kept) for kept in expected)):
            assert (frame.planes[0] == frame.pts % 256).all()
            del frame
