"""Meshes: what thinning keeps."""

from __future__ import annotations

import numpy as np

from compass_edge.sim.mesh import Mesh


def ball(rings: int = 40) -> Mesh:
    theta, phi = np.meshgrid(np.linspace(0, np.pi, rings), np.linspace(0, 2 * np.pi, rings), indexing="ij")
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1).reshape(-1, 3)
    corner = (np.arange(rings - 1)[:, None] * rings + np.arange(rings - 1)).ravel()
    faces = np.concatenate([np.stack(three, -1) for three in (
        (corner, corner + rings, corner + 1), (corner + 1, corner + rings, corner + rings + 1))])  # fmt: skip
    return Mesh(points, faces)


def test_thinning_keeps_the_shape_with_fewer_faces() -> None:
    thin = ball().thinned(0.25)
    assert 8 <= len(thin.faces) < len(ball().faces) / 4
    radius = np.linalg.norm(thin.points, axis=1)
    assert 0.9 < radius.min() <= radius.max() < 1.001
    assert all(len(set(face)) == 3 for face in thin.faces.tolist())


def test_a_small_part_does_not_vanish() -> None:
    small = Mesh(ball().points * 0.01, ball().faces)
    assert len(small.thinned(1.0).faces) >= 8


def test_stl_there_and_back() -> None:
    thin = ball(8).thinned(0.1)
    again = Mesh.from_stl(thin.to_stl())
    np.testing.assert_allclose(again.points[again.faces], thin.points[thin.faces], atol=1e-6)


def test_a_wavefront_file_with_polygons() -> None:
    text = "# a square\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\nf 1//1 2//1 3//1 4//1\n"
    mesh = Mesh.from_obj(text)
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert mesh.points.shape == (4, 3)
