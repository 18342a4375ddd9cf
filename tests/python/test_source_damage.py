"""Hundreds of damaged variants of the goldens: each decodes or raises one sentence; nothing crashes, nothing hangs.

Every batch runs in a process of its own, so that a crash is a failed test that names the variant. This file is also
that process: `python test_source_damage.py BACKEND FIRST LAST` prints one line a variant.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from compass_edge.errors import CompassError
from compass_edge.frames.source import Backend, open_source

GOLDENS = Path(__file__).parents[1] / "goldens"
CLIPS = ("h264.mp4", "h264.mkv", "h264.ts", "odd.avi", "redrawn.mov", "yuv444p.mp4", "two_sizes.h264")
VARIANTS = 1260
BATCH = 252
MOST_FRAMES = 200  # of a clip of 60; damaged indexes may repeat some


def flip_bits(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice((1, 4, 16, 64))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def damage_header(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice((1, 3, 12))):
        data[chance.randrange(min(600, len(data)))] = chance.randrange(256)
    return data


def damage_tail(data: bytearray, chance: random.Random) -> bytearray:
    """Where mp4 and avi keep their index."""
    for _ in range(chance.choice((1, 3, 12))):
        data[-1 - chance.randrange(min(2000, len(data) - 1))] = chance.randrange(256)
    return data


def truncate(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.randrange(len(data))]


def zero_range(data: bytearray, chance: random.Random) -> bytearray:
    begin, length = chance.randrange(len(data)), chance.choice((1, 16, 200, 3000))
    data[begin : begin + length] = bytes(len(data[begin : begin + length]))
    return data


def swap_blocks(data: bytearray, chance: random.Random) -> bytearray:
    size = chance.choice((4, 64, 188, 1000))
    a, b = sorted(chance.randrange(max(1, len(data) - size)) for _ in range(2))
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
    return data


def insert_noise(data: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(data))
    return data[:at] + bytearray(chance.randbytes(chance.choice((1, 7, 400)))) + data[at:]


def repeat_block(data: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(data))
    return data[:at] + data[at : at + chance.choice((8, 188, 2000))] * 3 + data[at:]


def large_number(data: bytearray, chance: random.Random) -> bytearray:
    """Sizes, counts and offsets at their limits."""
    at = chance.randrange(max(1, len(data) - 8))
    data[at : at + 4] = chance.choice(
        (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\0\0\0", bytes(4))
    )
    return data


KINDS = (
    flip_bits, damage_header, damage_tail, truncate, zero_range, swap_blocks, insert_noise, repeat_block, large_number,
)  # fmt: skip


def variant(number: int) -> tuple[str, bytearray]:
    """The damaged bytes, the same on every machine."""
    chance = random.Random(number)
    clip, kind = CLIPS[number % len(CLIPS)], KINDS[number // len(CLIPS) % len(KINDS)]
    return f"{kind.__name__} of {clip}", kind(bytearray((GOLDENS / clip).read_bytes()), chance)


def outcome(path: Path, number: int, backend: Backend) -> str:
    try:
        with open_source(
            str(path), backend=backend, timeout_s=3, threads=1 + number % 2, history=2, leases=2, max_bytes=1 << 28
        ) as source:
            if number % 3 == 1:
                source.seek(0.4)
            frames = 0
            while frames < MOST_FRAMES and (frame := source.step()) is not None:
                frame.planes[0].sum()
                frames += 1
                del frame
            stats = source.stats
            return f"{frames} frames, {stats.damaged_frames} damaged"
    except CompassError as error:
        sentence = str(error)
        if not sentence.endswith(".") or "\n" in sentence:
            raise AssertionError(f"not a sentence: {sentence!r}") from error
        return f"refused: {sentence}"


def main(backend: Backend, first: int, last: int, folder: Path) -> None:
    for number in range(first, last):
        name, data = variant(number)
        print(f"{number} {name}:", end=" ", flush=True)
        path = folder / f"damaged{(GOLDENS / CLIPS[number % len(CLIPS)]).suffix}"
        path.write_bytes(data)
        print(outcome(path, number, backend), flush=True)


@pytest.mark.parametrize("first", range(0, VARIANTS, BATCH))
def test_damaged_files_decode_or_say_why(backend: str, tmp_path: Path, first: int) -> None:
    command = [sys.executable, __file__, backend, str(first), str(first + BATCH), str(tmp_path)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired as expired:
        lines = (expired.stdout or b"").decode().splitlines()
        pytest.fail(f"hangs at {lines[-1] if lines else 'the first variant'}")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"exit {done.returncode} at {lines[-1:]}: {done.stderr[-2000:]}"
    assert len(lines) == BATCH
    decoded = [line for line in lines if " frames, " in line]
    assert len(decoded) > BATCH // 3  # most damage is survived
    assert len(decoded) + sum("refused: " in line for line in lines) == BATCH


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))  # type: ignore[arg-type]
