"""Micro-benchmarks of a source: opening, decoding a clip, seeking."""

from pathlib import Path
from typing import Any

import pytest

from compass_edge.frames.clip import write_clip
from compass_edge.frames.source import backends, open_source


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("bench") / "clip.mp4", frames=90, options={"g": "30"})


@pytest.mark.parametrize("backend", backends())
def test_decode_90_frames(benchmark: Any, clip: Path, backend: str) -> None:
    def decode() -> int:
        with open_source(str(clip), backend=backend) as source:  # type: ignore[arg-type]
            return sum(1 for _ in source)

    assert benchmark(decode) == 90


@pytest.mark.parametrize("backend", backends())
def test_seek(benchmark: Any, clip: Path, backend: str) -> None:
    with open_source(str(clip), backend=backend) as source:  # type: ignore[arg-type]

        def jump() -> None:
            source.seek(1.5)
            source.step()

        benchmark(jump)
