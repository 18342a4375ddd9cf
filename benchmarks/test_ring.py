"""Micro-benchmarks of the ring from Python: a push, a look-up, a zero-copy view."""

from typing import Any

import numpy as np
import pytest

from compass_edge.frames.source import push_ring

SIZES = ((640, 480), (1280, 720))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_push_rgb(benchmark: Any, width: int, height: int) -> None:
    writer = push_ring(width, height).writer()
    picture = np.zeros((height, width, 3), np.uint8)
    benchmark(writer.push, picture)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_latest_with_view(benchmark: Any, width: int, height: int) -> None:
    ring = push_ring(width, height)
    ring.writer().push(np.zeros((height, width, 3), np.uint8))
    reader = ring.reader()

    def look() -> int:
        frame = reader.latest()
        assert frame is not None
        return int(frame.planes[0][0, 0, 0])

    benchmark(look)
