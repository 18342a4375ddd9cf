"""From a ring slot to patches in a device's memory: the twin on the host, and the body that uses it."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_samples import Samples
from tensorrt_samples import FP16, OPTIONS, listed, stood_in

from compass_edge.errors import EnvironmentFault, UsageError
from compass_edge.frames.native import native
from compass_edge.frames.source import open_source, push_ring
from compass_edge.models import Image
from compass_edge.prms.robometer import RoboMeter

pytestmark = pytest.mark.tensorrt
SETTINGS: dict[str, Any] = {"patch": 8, "merge": 2, "temporal": 1, "min_pixels": 256, "max_pixels": 65536}
GOLDEN = Path(__file__).parents[1] / "goldens" / "h264.mp4"


def frames_of(count: int, size: tuple[int, int] = (64, 96)) -> list[Any]:
    height, width = size
    ring = push_ring(width, height, leases=count, history=count)
    writer, reader = ring.writer(), ring.reader(count)
    made = []
    for number in range(count):
        writer.push(np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8))
        made.append(reader.latest())
    return made


def test_the_twin_gives_the_patches_of_the_preprocessor() -> None:
    patcher, plain = native().FramePatcher("host", **SETTINGS), native().Preprocessor(**SETTINGS)
    with open_source(str(GOLDEN)) as source:
        frame = source.step()
        wanted = plain.run(frame)
        out = np.zeros_like(wanted)
        patcher.enqueue(frame, out.ctypes.data, out.nbytes)
    assert np.array_equal(out.view(np.uint16), wanted.view(np.uint16))
    assert patcher.stats == {"frames": 1, "bytes": patcher.stats["bytes"], "plans": 1}
    assert patcher.stats["bytes"] < frame.width * frame.height * 2  # planes of 4:2:0, not RGB


def test_a_frame_is_held_until_it_was_read_and_then_let_go() -> None:
    (frame,) = frames_of(1)
    patcher = native().FramePatcher("host", **SETTINGS)
    rows, columns = native().Preprocessor(**SETTINGS).grid(frame.width, frame.height)
    memory = (ctypes.c_uint8 * (rows * columns * 3 * 64 * 2))()
    patcher.enqueue(frame, ctypes.addressof(memory), len(memory))
    assert patcher.held == 1
    patcher.finish()
    assert patcher.held == 0


@pytest.mark.parametrize(
    ("device", "kind", "words"),
    [("cuda", EnvironmentFault, "CUDA|GPU"), ("moon", UsageError, '"cuda" or "host", and \'moon\'')],
)
def test_a_device_that_is_not_there_is_named(device: str, kind: type[Exception], words: str) -> None:
    if device == "cuda" and native().built_with_cuda:
        pytest.skip("built with CUDA: the C++ tests ask for the GPU")
    with pytest.raises(kind, match=words):
        native().FramePatcher(device, **SETTINGS)


def test_a_released_frame_and_a_small_buffer_are_refused() -> None:
    first, second = frames_of(2)
    patcher = native().FramePatcher("host", **SETTINGS)
    first.release()
    with pytest.raises(UsageError, match="was released"):
        patcher.enqueue(first, 0, 0)
    memory = (ctypes.c_uint8 * 16)()
    with pytest.raises(UsageError, match="bytes"):
        patcher.enqueue(second, ctypes.addressof(memory), 16)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def test_a_body_patches_ring_frames_on_the_device_and_scores_the_same(samples: Samples, tmp_path: Path) -> None:
    folder = samples.copy(tmp_path / "meter", "robometer", **FP16)
    listed(folder)
    body, device = stood_in(folder)
    frames = frames_of(5)
    pictures = [Image(f"frame {number}", frame) for number, frame in enumerate(frames)]
    arrays = [Image(f"array {number}", frame.rgb()) for number, frame in enumerate(frames)]
    meter = RoboMeter(folder, OPTIONS, body=body, slots=4)
    device.done.clear()
    by_device = meter.curve("put the red block into the box", pictures)
    assert device.done.count("patch vision.patches") == len(frames)
    assert "upload vision.patches" not in device.done
    device.done.clear()
    by_host = meter.curve("put the red block into the box", arrays)
    assert "patch vision.patches" not in device.done
    assert "upload vision.patches" in device.done
    assert np.array_equal(by_device.progress, by_host.progress)
    assert np.ptp(by_device.progress) > 1e-4
    body.close()
    del meter, body, pictures, frames
    gc.collect()
