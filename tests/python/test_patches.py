"""Patches bit for bit, on machines without torch: checksums that tests/goldens/make_patches.py took of the reference."""

import functools
import hashlib
import json
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from compass_edge.errors import UsageError
from compass_edge.frames.native import native
from compass_edge.frames.patches import FAMILIES, preprocessor_for

GOLDENS = Path(__file__).parents[1] / "goldens" / "patches.json"


@functools.cache
def pattern(width: int, height: int) -> np.ndarray:
    """Slopes, hard edges and fine texture from whole numbers alone: the same bytes on every machine."""
    y, x, c = np.ogrid[0:height, 0:width, 0:3]
    slope = (5 * x + 3 * y) // (2 + c)
    texture = (x * y * (c + 1)) // 7 % 61
    edges = 90 * ((x // 19 + y // 13 + c) % 2)
    return ((slope + texture + edges) % 256).astype(np.uint8)


def checksum(patches: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(patches).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("isa", native().available_isas())
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("family", ["qwen3-vl", "qwen2.5-vl"])
def test_patches_equal_the_reference(family: str, dtype: str, isa: str) -> None:
    preprocess = preprocessor_for(family, dtype=dtype, isa=isa)
    goldens = json.loads(GOLDENS.read_text())[family]
    wrong = []
    for golden in goldens:
        width, height = golden["size"]
        assert list(preprocess.grid(width, height)) == golden["grid"]
        if checksum(preprocess.run(pattern(width, height))) != golden[dtype]:
            wrong.append((width, height))
    assert not wrong
    assert len(goldens) >= 40


def test_smart_resize_rounds_half_to_even() -> None:
    resize = native().smart_resize
    assert resize(1280, 720, 32) == (1280, 704)
    assert resize(848, 480, 32) == (832, 480)
    assert resize(640, 400, 32) == (640, 384)


def test_an_unknown_family_gets_a_sentence() -> None:
    with pytest.raises(UsageError, match="qwen3-vl"):
        preprocessor_for("gpt")
    assert "qwen3.5" in FAMILIES


def test_two_threads_cannot_share_one_preprocessor() -> None:
    shared = preprocessor_for("qwen3-vl", isa="scalar")  # slow: the threads meet
    picture = pattern(1280, 720)
    expected = checksum(preprocessor_for("qwen3-vl").run(picture))
    results: list[str] = []
    refused: list[str] = []
    until = time.monotonic() + 60

    def work() -> None:
        while not refused and time.monotonic() < until:
            try:
                results.append(checksum(shared.run(picture)))
            except UsageError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "make one for each thread" in refused[0]
    assert set(results) == {expected}


def test_a_picture_from_another_process_is_one_too() -> None:
    """What was pickled has a type of its own that equals numpy's."""
    picture = pattern(64, 48)
    sent = pickle.loads(pickle.dumps(picture))
    preprocess = preprocessor_for("qwen3-vl")
    assert checksum(preprocess.run(sent)) == checksum(preprocess.run(picture))
