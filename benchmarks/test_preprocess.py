"""The fused preprocess beside the same operations in torch.

    pytest benchmarks/test_preprocess.py          every format, dtype and instruction set, with pytest-benchmark
    python benchmarks/test_preprocess.py          a race: ours over the fastest rival, in CPU-seconds, turns interleaved

Rivals get planar uint8 RGB and everything on one thread: torch's antialiased bicubic, normalise in f32, permute to
patches, then the dtype; and the same with the dtype before the permute, which moves less memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compass_edge import _native

SIZES = ((640, 480), (1280, 720), (1920, 1080))
FORMATS = ("rgb24", "yuv420p", "nv12", "yuyv", "gray8")
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}


def planes(pixel_format: str, width: int, height: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    half = ((height + 1) // 2, (width + 1) // 2)
    shapes = {
        "rgb24": [(height, 3 * width)],
        "yuv420p": [(height, width), half, half],
        "nv12": [(height, width), (half[0], 2 * half[1])],
        "yuyv": [(height, 4 * half[1])],
        "gray8": [(height, width)],
    }[pixel_format]
    return tuple(rng.integers(0, 256, shape, np.uint8) for shape in shapes)


def aligned(shape: tuple[int, int], dtype: type) -> np.ndarray:
    """An output as an engine allocates its input: on a 64-byte boundary."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def ours(pixel_format: str, width: int, height: int, dtype: str, isa: str) -> Callable[[], Any]:
    preprocess = _native.Preprocessor(dtype=dtype, isa=isa)
    grid_height, grid_width = preprocess.grid(width, height)
    out = aligned((grid_height * grid_width, preprocess.columns), NUMPY[dtype])
    source = planes(pixel_format, width, height)
    return lambda: preprocess.run_planes(source, pixel_format, width, height, "bt709", "limited", out)


def rival(width: int, height: int, dtype: str, early: bool) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    final = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    out_width, out_height = _native.smart_resize(width, height)
    rows, columns = out_height // 16, out_width // 16
    interleaved = planes("rgb24", width, height)[0].reshape(height, width, 3)
    picture = torch.from_numpy(interleaved).permute(2, 0, 1).contiguous()[None]

    def run() -> Any:
        pixels = picture
        if (out_height, out_width) != (height, width):
            pixels = torch.nn.functional.interpolate(
                pixels, size=(out_height, out_width), mode="bicubic", antialias=True, align_corners=False
            )
        values = pixels.to(torch.float32).sub_(127.5).div_(127.5)
        if early:
            values = values.to(final)
        blocks = values.reshape(1, 3, rows // 2, 2, 16, columns // 2, 2, 16).permute(0, 2, 5, 3, 6, 1, 4, 7)
        repeated = blocks.unsqueeze(6).expand(-1, -1, -1, -1, -1, -1, 2, -1, -1)
        return repeated.reshape(rows * columns, 1536).to(final)

    return run


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize("dtype", list(NUMPY))
@pytest.mark.parametrize("pixel_format", FORMATS)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_ours(benchmark: Any, size: tuple[int, int], pixel_format: str, dtype: str, isa: str) -> None:
    benchmark.group = f"{size[0]}x{size[1]} {dtype}"
    benchmark(ours(pixel_format, *size, dtype, isa))


@pytest.mark.parametrize("early", [False, True], ids=["torch", "torch, early dtype"])
@pytest.mark.parametrize("dtype", list(NUMPY))
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_rival(benchmark: Any, size: tuple[int, int], dtype: str, early: bool) -> None:
    pytest.importorskip("torch")
    benchmark.group = f"{size[0]}x{size[1]} {dtype}"
    benchmark(rival(*size, dtype, early))


def main(rounds: int) -> None:
    from _race import Contender, machine, race, versions

    def timed(run: Callable[[], Any]) -> Contender:
        def turn() -> float:
            start = time.process_time()
            run()
            return time.process_time() - start

        return turn

    print(machine(), versions("torch", "numpy"), f"{rounds} rounds", sep="\n")
    for width, height in SIZES:
        for dtype in NUMPY:
            rivals = {
                f"torch{', early dtype' if e else ''}": timed(rival(width, height, dtype, e)) for e in (False, True)
            }
            isas = [isa for isa in _native.available_isas() if isa != "scalar"]
            mine = {f"{f} {isa}": timed(ours(f, width, height, dtype, isa)) for isa in isas for f in FORMATS}
            spent = race(f"{width}x{height} {dtype}", {**rivals, **mine}, rounds)
            best = min(spent[name] for name in rivals)
            print(f"\n{width}x{height} to {dtype}: CPU-ms, and how often the fastest rival's time it fits")
            for name, seconds in spent.items():
                print(f"  {name:<20}{1e3 * seconds:>9.3f}{best / seconds:>8.2f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 31)
