"""FrameRing, Writer, Reader and Frame in Python: views without a copy, leases by garbage collection, wrong inputs."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.source import push_ring

core = native()


def ring_of(width: int = 32, height: int = 24, *, format: str = "rgb24", history: int = 4, leases: int = 4) -> Any:
    return push_ring(width, height, format=format, history=history, leases=leases)


def picture(value: int, width: int = 32, height: int = 24) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def test_a_pushed_frame_comes_back_with_its_stamp() -> None:
    ring = ring_of()
    writer, reader = ring.writer(), ring.reader(2)
    assert reader.latest() is None
    assert writer.push(picture(7), captured_ns=123, pts=45, time_base=(1, 90_000), source=3, damaged=True) == 0
    frame = reader.latest()
    assert (frame.seq, frame.captured_ns, frame.pts, frame.time_base, frame.source) == (0, 123, 45, (1, 90_000), 3)
    assert frame.time == pytest.approx(45 / 90_000)
    assert frame.damaged
    assert not frame.gap_before
    assert (frame.width, frame.height, frame.format, frame.range) == (32, 24, "rgb24", "full")
    assert frame.planes[0].shape == (24, 32, 3)
    assert (frame.rgb() == 7).all()
    assert "32x24 rgb24" in repr(frame)
    assert reader.get(0).pts == 45
    assert reader.get(1) is None
    assert reader.next(0).seq == 0


def test_views_are_read_only_and_not_copied() -> None:
    ring = ring_of()
    ring.writer().push(picture(9))
    reader = ring.reader(1)
    frame = reader.latest()
    first, again = frame.planes[0], np.asarray(frame.plane(0))
    assert first.ctypes.data == again.ctypes.data
    assert not first.flags.writeable
    assert not first.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0, 0] = 1
    with pytest.raises(ValueError, match=r"(?i)writeable"):
        first.flags.writeable = True


def test_garbage_releases_the_lease() -> None:
    ring = ring_of(leases=2)
    ring.writer().push(picture(9))
    reader = ring.reader(2)
    frame = reader.latest()
    plane = frame.planes[0]
    corner = plane[:2, :2]
    assert reader.leases_out == 1
    del frame, plane
    gc.collect()
    assert reader.leases_out == 1
    assert (corner == 9).all()
    del corner
    gc.collect()
    assert reader.leases_out == 0
    assert ring.stats["leases_out"] == 0


def test_release_and_with() -> None:
    ring = ring_of()
    ring.writer().push(picture(9))
    reader = ring.reader(1)
    with reader.latest() as frame:
        view = frame.planes[0]
        with pytest.raises(UsageError, match="holds them all"):
            reader.latest()
    for use in (lambda: frame.seq, lambda: frame.planes, frame.rgb, lambda: frame.plane(0), lambda: repr(frame)):
        with pytest.raises(UsageError, match="released"):
            use()
    assert reader.leases_out == 1  # the view has its share
    del view
    gc.collect()
    assert reader.latest() is not None


def test_a_view_outlives_everything() -> None:
    ring = ring_of()
    ring.writer().push(picture(77))
    reader = ring.reader(1)
    view = reader.latest().planes[0]
    del ring, reader
    gc.collect()
    assert (view == 77).all()


def test_held_pixels_stay_while_the_writer_goes_on() -> None:
    ring = ring_of(history=1, leases=3)
    writer, reader = ring.writer(), ring.reader(3)
    held = []
    for value in range(200):
        writer.push(picture(value))
        if value % 50 == 10:
            held.append((value, reader.latest().planes[0]))
            held = held[-2:]
    for value, view in held:
        assert (view == value).all()
    assert ring.stats["written"] == 200
    assert ring.stats["oldest_lease_age_s"] >= 0


def test_dlpack() -> None:
    ring = ring_of()
    ring.writer().push(picture(5))
    reader = ring.reader(4)
    plane = reader.latest().plane(0)
    assert plane.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(plane)
    assert array.ctypes.data == np.asarray(plane).ctypes.data
    assert array.shape == (24, 32, 3)
    assert not array.flags.writeable
    for arguments in ({}, {"max_version": None}, {"max_version": (0, 8)}, {"max_version": (1, 0), "copy": True}):
        with pytest.raises(BufferError):
            plane.__dlpack__(**arguments)
    unused = plane.__dlpack__(max_version=(1, 0))
    del unused, plane, array
    gc.collect()
    assert reader.leases_out == 0


def test_torch_reads_the_same_memory() -> None:
    torch = pytest.importorskip("torch")
    ring = ring_of()
    ring.writer().push(picture(5))
    reader = ring.reader(1)
    plane = reader.latest().plane(0)
    try:
        tensor = torch.from_dlpack(plane)
    except BufferError:
        pytest.skip("this torch does not ask for DLPack 1.0")
    assert tensor.shape == (24, 32, 3)
    assert tensor.data_ptr() == np.asarray(plane).ctypes.data
    assert int(tensor.sum()) == 5 * 24 * 32 * 3
    del plane
    gc.collect()
    assert reader.leases_out == 1
    del tensor
    gc.collect()
    assert reader.leases_out == 0


def test_one_writer_and_budgets_that_add_up() -> None:
    ring = ring_of(leases=3)
    writer = ring.writer()
    with pytest.raises(UsageError, match="already has its writer"):
        ring.writer()
    two = ring.reader(2)
    with pytest.raises(UsageError, match="2 of them belong to other readers"):
        ring.reader(2)
    assert ring.leases_left == 1
    two.close()
    assert ring.leases_left == 3
    writer.close()
    assert ring.writer() is not None


def test_gaps_are_flagged_once() -> None:
    ring = ring_of()
    writer, reader = ring.writer(), ring.reader(1)
    writer.push(picture(0))
    writer.mark_gap()
    writer.push(picture(1))
    writer.push(picture(2), gap_before=True)
    writer.push(picture(3))
    assert [reader.get(seq).gap_before for seq in range(4)] == [False, True, True, False]
    assert ring.stats["gaps"] == 2


PLANES = {
    "yuv420p": [(24, 32), (12, 16), (12, 16)],
    "nv12": [(24, 32), (12, 32)],
    "yuyv": [(24, 64)],
    "gray8": [(24, 32)],
    "rgb24": [(24, 96)],
}


@pytest.mark.parametrize("format", PLANES)
def test_planes_go_in_and_come_out(format: str) -> None:
    ring = ring_of(format=format)
    writer, reader = ring.writer(), ring.reader(1)
    chance = np.random.default_rng(1)
    planes = [chance.integers(0, 256, shape, np.uint8) for shape in PLANES[format]]
    writer.push(planes, format=format, width=32, height=24, matrix="bt709", range="limited")
    frame = reader.latest()
    assert (frame.format, frame.matrix) == (format, "bt709")
    for ours, theirs in zip(frame.planes, planes, strict=True):
        np.testing.assert_array_equal(ours.reshape(theirs.shape), theirs)
    assert frame.rgb().shape == (24, 32, 3)
    with pytest.raises(UsageError, match="has planes 0 to"):
        frame.plane(len(planes))
    with pytest.raises(UsageError, match="has planes 0 to"):
        frame.plane(-1)


@pytest.mark.parametrize(
    ("what", "settings_"),
    [
        (np.zeros((24, 32, 4), np.uint8), {}),
        (np.zeros((24, 32, 3), np.float32), {}),
        (np.zeros((24, 32, 3), np.uint8)[:, ::2], {}),
        (np.zeros((24, 32, 3), np.uint8)[:, :, ::-1], {}),
        (np.zeros((0, 32, 3), np.uint8), {}),
        (np.zeros((24, 0), np.uint8), {}),
        (np.zeros(5, np.uint8), {}),
        (np.zeros((480, 640, 3), np.uint8), {}),
        ([np.zeros((24, 32), np.uint8)], {}),
        ([np.zeros((24, 32), np.uint8)], {"format": "yuv420p", "width": 32, "height": 24}),
        ([np.zeros((24, 32), np.uint8)], {"format": "gray8", "width": 33, "height": 24}),
        ([np.zeros((24, 32), np.uint8)], {"format": "gray8", "width": -1, "height": 24}),
        ([np.zeros((24, 32), np.uint8)], {"format": "gray8", "width": 0, "height": 0}),
        ([np.zeros((24, 32), np.uint8)], {"format": "purple", "width": 32, "height": 24}),
        ([np.zeros((24, 32), np.uint8)], {"format": "gray8", "width": 32, "height": 24, "matrix": "x"}),
        ([np.zeros((24, 32), np.uint8)], {"format": "gray8", "width": 32, "height": 24, "range": "x"}),
        ([], {"format": "gray8", "width": 32, "height": 24}),
        ("words", {}),
        (None, {}),
    ],
)
def test_wrong_pictures_are_refused_and_change_nothing(what: Any, settings_: dict[str, Any]) -> None:
    ring = ring_of()
    writer = ring.writer()
    with pytest.raises((ValueError, TypeError, CompassError)):
        writer.push(what, **settings_)
    assert ring.stats["written"] == 0
    assert writer.push(picture(1)) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"frame_bytes": 0},
        {"frame_bytes": 64, "history": 0},
        {"frame_bytes": 64, "leases": 0},
        {"frame_bytes": 64, "in_flight": 0},
        {"frame_bytes": 64, "history": 4, "leases": 4, "slots": 8},
        {"frame_bytes": 64, "history": 100_000},
        {"frame_bytes": 64, "history": 2**31 - 1, "leases": 2**15 - 1},
        {"frame_bytes": 64, "leases": 100_000},
        {"frame_bytes": 64, "slots": -5},
        {"frame_bytes": -1},
    ],
)
def test_rings_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((CompassError, TypeError)):
        core.FrameRing(**options)


def test_push_rings_are_bounded() -> None:
    with pytest.raises(UsageError, match="max_bytes"):
        push_ring(1920, 1080, max_bytes=1 << 20)
    with pytest.raises(UsageError):
        push_ring(0, 10)
    with pytest.raises((UsageError, ValueError)):
        push_ring(10, 10, format="purple")


@settings(max_examples=60)
@given(
    history=st.integers(1, 6),
    leases=st.integers(1, 6),
    actions=st.lists(st.sampled_from(["push", "latest", "oldest", "get", "drop", "gap"]), max_size=60),
    every=st.integers(1, 4),
)
def test_any_order_of_calls_keeps_the_promises(history: int, leases: int, actions: list[str], every: int) -> None:
    ring = ring_of(history=history, leases=leases)
    writer, reader = ring.writer(), ring.reader(leases)
    held: list[Any] = []
    written = 0
    for action in actions:
        if action == "push":
            assert writer.push(picture(written % 256), pts=written) == written
            written += 1
        elif action == "gap":
            writer.mark_gap()
        elif action == "drop" and held:
            held.pop(0)
        elif action in ("latest", "oldest", "get"):
            if len(held) == leases:
                continue
            if action == "latest":
                frame = reader.latest()
            else:
                frame = reader.next(0, every) if action == "oldest" else reader.get(max(written - history, 0))
            assert frame is not None or written == 0 or action == "oldest"
            if frame is not None:
                assert action != "latest" or frame.seq == written - 1
                assert action != "oldest" or frame.seq % every == 0
                held.append(frame)
        frame = None
        assert reader.leases_out == len(held)
        assert all((each.planes[0] == each.pts % 256).all() for each in held)


def test_readers_on_threads_see_whole_frames() -> None:
    ring = ring_of(64, 48, history=2, leases=8)
    writer = ring.writer()
    done, torn = threading.Event(), []

    def watch() -> None:
        reader = ring.reader(2)
        while not done.is_set():
            frame = reader.latest()
            if frame is not None and not (frame.planes[0] == frame.pts % 256).all():
                torn.append(frame.seq)

    threads = [threading.Thread(target=watch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(3000):
        writer.push(picture(number % 256, 64, 48), pts=number)
    done.set()
    for thread in threads:
        thread.join()
    assert torn == []


@pytest.mark.parametrize(
    "use", ["writer.push(picture)", "reader.latest()", "reader.get(0)", "reader.next(0)", "reader.leases"]
)
def test_a_closed_handle_says_so(use: str) -> None:
    code = (
        "import numpy\nfrom compass_edge.errors import UsageError\nfrom compass_edge.frames.source import push_ring\n"
        "ring = push_ring(8, 8); picture = numpy.zeros((8, 8, 3), numpy.uint8)\n"
        "writer, reader = ring.writer(), ring.reader(1); writer.close(); reader.close()\n"
        f"try:\n    {use}\nexcept UsageError:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "refused"
