"""The camera: pictures of the world, and which things they show."""

from __future__ import annotations

from types import TracebackType

import mujoco
import numpy as np
from numpy.typing import NDArray

from compass_edge.data.film import Picture
from compass_edge.sim.gl import choose_gl
from compass_edge.sim.world import World

SIZES = (448, 224)
_DRAWN = 448  # smaller pictures are averaged from it: no jagged edges
_MASK = 224  # pixels of the picture that tells things apart
_SEEN = 12  # of those a thing must fill to be seen
_GEOMS = 400  # more than a scene has: MuJoCo looks through all of them for every picture
_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)  # MuJoCo compares its own enumeration element by element


class Camera:
    """Made with the first world it sees. Used by one thread."""

    def __init__(self, world: World, size: int = _DRAWN) -> None:
        choose_gl()
        model = world.model
        self._shrink = _DRAWN // size
        self._colours = mujoco.Renderer(model, _DRAWN, _DRAWN, max_geom=_GEOMS)
        self._masks = mujoco.Renderer(model, _MASK, _MASK, max_geom=_GEOMS)
        self._masks.enable_segmentation_rendering()
        self._masks.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        names = list(world.things)
        bodies = {model.body(name).id: index for index, name in enumerate(names)}
        self._names = names
        self._thing_of = np.full(model.ngeom + 1, -1)  # the last one: no geom at all
        for geom in range(model.ngeom):
            body = int(model.geom_bodyid[geom])
            self._thing_of[geom] = bodies.get(body, bodies.get(int(model.body_parentid[body]), -1))

    def __enter__(self) -> Camera:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._colours.close()
        self._masks.close()

    def picture(self, world: World) -> Picture:
        self._colours.update_scene(world.data, "front")
        drawn: NDArray[np.uint8] = self._colours.render()
        if self._shrink == 1:
            return drawn
        side = _DRAWN // self._shrink
        blocks = drawn.reshape(side, self._shrink, side, self._shrink, 3).astype(np.uint16)
        mean: NDArray[np.uint8] = ((blocks.sum(axis=(1, 3)) + self._shrink**2 // 2) // self._shrink**2).astype(np.uint8)
        return mean

    def visible(self, world: World) -> frozenset[str]:
        """The names of the things that fill enough of the picture to be seen."""
        self._masks.update_scene(world.data, "front")
        found = self._masks.render()
        geoms = np.where(found[..., 1] == _GEOM, found[..., 0], -1)
        things = self._thing_of[geoms]
        counts = np.bincount(things[things >= 0], minlength=len(self._names))
        return frozenset(name for name, count in zip(self._names, counts, strict=True) if count >= _SEEN)
