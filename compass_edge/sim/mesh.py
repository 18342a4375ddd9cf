"""Triangle meshes: read from Wavefront and STL files, thinned by clustering their vertices, written as binary STL."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STL = np.dtype([("normal", "<3f4"), ("corners", "<9f4"), ("attribute", "<u2")])
_HEADER = 84  # bytes of an STL before its triangles: a comment of 80, and how many there are
_FEWEST = 8  # triangles that thinning must leave


@dataclass(frozen=True, slots=True)
class Mesh:
    points: NDArray[np.float64]  # (n, 3)
    faces: NDArray[np.int64]  # (m, 3)

    @classmethod
    def from_obj(cls, text: str) -> Mesh:
        points: list[list[float]] = []
        faces: list[list[int]] = []
        for line in text.splitlines():
            if line.startswith("v "):
                points.append([float(number) for number in line.split()[1:4]])
            elif line.startswith("f "):
                corners = [int(corner.split("/")[0]) - 1 for corner in line.split()[1:]]
                faces += [[corners[0], corners[i], corners[i + 1]] for i in range(1, len(corners) - 1)]
        return cls(np.array(points), np.array(faces, np.int64))

    @classmethod
    def from_stl(cls, data: bytes) -> Mesh:
        (count,) = struct.unpack_from("<I", data, 80)
        corners = np.frombuffer(data, _STL, count, _HEADER)["corners"].reshape(-1, 3)
        return cls(corners.astype(np.float64), np.arange(len(corners)).reshape(-1, 3))

    def thinned(self, grid: float) -> Mesh:
        """All points of a grid cell become their mean; a small part gets a finer grid, so that something is left of it."""
        mesh = self._clustered(grid)
        while len(mesh.faces) < min(_FEWEST, len(self.faces)) and grid > 1e-4:
            grid /= 2
            mesh = self._clustered(grid)
        return mesh

    def _clustered(self, grid: float) -> Mesh:
        cells = np.round(self.points / grid).astype(np.int64)
        found, cell = np.unique(cells, axis=0, return_inverse=True)
        cell = cell.ravel()
        means = np.zeros((len(found), 3))
        np.add.at(means, cell, self.points)
        means /= np.bincount(cell)[:, None]
        faces = cell[self.faces]
        flat = (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 0] == faces[:, 2])
        faces = faces[~flat]
        _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
        return Mesh(means, faces[np.sort(first)])

    def to_stl(self) -> bytes:
        corners = self.points[self.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        triangles = np.zeros(len(self.faces), _STL)
        triangles["normal"] = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        triangles["corners"] = corners.reshape(-1, 9)
        return bytes(80) + struct.pack("<I", len(triangles)) + triangles.tobytes()
