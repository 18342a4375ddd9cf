"""Pictures and videos through the tower, exported, against transformers: every family and dialect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from engine_samples import FEATURES, SIZES, Case, Reference, drawn, furthest, video_patches

from compass_edge.engines.onnx.body import Body

pytest_plugins = ["engine_cases"]
pytestmark = pytest.mark.usefixtures("one_thread")


def expected_features(reference: Reference, kind: str, patches: np.ndarray, grids: Any) -> tuple[list[Any], list[Any]]:
    """Of each picture: [tokens, hidden], and [taps, tokens, hidden] or None."""
    with torch.inference_mode():
        features_of = getattr(reference.model.model, f"get_{kind}_features")
        made = features_of(torch.from_numpy(patches), torch.tensor(grids), return_dict=True)
    embeddings = [part.numpy() for part in made.pooler_output]
    taps = getattr(made, "deepstack_features", None)
    if taps is None:
        return embeddings, [None] * len(embeddings)
    return embeddings, [np.stack(of_picture) for of_picture in zip(*taps, strict=True)]


def test_pictures_of_many_sizes_through_the_tower(case: Case, body: Body) -> None:
    images = [drawn(*size, seed) for seed in range(2) for size in SIZES]
    patches, grids = zip(*map(case.reference.patches, images), strict=True)
    embeddings, taps = expected_features(
        case.reference, "image", np.concatenate(patches), [(1, *grid) for grid in grids]
    )
    assert np.concatenate(embeddings).std() > 0.1
    found = body.vision.features(images)
    for features, grid, expected, tapped in zip(found, grids, embeddings, taps, strict=True):
        assert (features.rows * 2, features.columns * 2) == grid
        assert furthest(features.embeddings, expected) < FEATURES
        assert (features.taps is None) == (tapped is None) == (case.reference.family != "qwen3-vl")
        if tapped is not None:
            assert furthest(features.taps, tapped) < FEATURES


@pytest.mark.parametrize("size", [(112, 84), (160, 96)])
def test_videos_through_the_tower(case: Case, body: Body, size: tuple[int, int]) -> None:
    patches, grid = video_patches(case.reference, 6, *size)
    both = patches.reshape(*patches.shape[:2], 3, 2, -1)
    assert not np.array_equal(both[:, :, :, 0], both[:, :, :, 1])
    embeddings, taps = expected_features(
        case.reference, "video", patches.reshape(-1, patches.shape[2]), [(len(patches), *grid)]
    )
    found = body.vision.encode_patches(patches, *grid)
    assert furthest(np.concatenate([features.embeddings for features in found]), embeddings[0]) < FEATURES
    if taps[0] is not None:
        assert furthest(np.concatenate([features.taps for features in found], axis=1), taps[0]) < FEATURES
