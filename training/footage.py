"""Footage: filmed training episodes, with the state of the world behind every frame and a map of what each picture shows.

The whole script is played, and a stretch of it is filmed at the loop's ticks: physics is cheap, pictures are not. The rest is
filmed now and then, so that a whole episode can be shown too. FOLDER/TASK-SEED.npy are pictures, .seg.npy maps, .paint.npy which
paint each pixel has (so that a film can be shown in other colours), .pkl the rest.

    python -m training.footage FOLDER --films 14
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.errors import UsageError
from compass_edge.sim.catalogue import TASKS, split, write
from compass_edge.sim.dice import Dice
from compass_edge.sim.gl import choose_gl
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot
from compass_edge.sim.tasks.draft import PAINTS
from compass_edge.sim.things import COLOURS
from training.crew import launched
from training.paint import Paints, picture_in, told_in

SIDE = 240  # pixels of a picture, as the model sees it
CELL = 4  # pixels of a cell of the map
EVERY = 2  # frames from tick to tick, as in the loop
_SPARSE = 16  # frames from picture to picture outside of the stretch
_LONGEST = 120  # ticks of a stretch
HAND, ARM = 250, 251  # in a map, beside the numbers of things; 255 is everything else
NOTHING = 255
TRAINING = 10_000  # the first seed that a model may be trained on
# Several of a kind stand close together there, and which one it is decides: tuning films of these went wrong most often.
HARD = frozenset(("S3", "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "R6"))


@dataclass(slots=True)
class Footage:
    """`frames` are the numbers of the frames that were filmed; `pictures[i]` shows `frames[i]`."""

    script: Script
    shots: list[Shot]
    ends: list[int]
    frames: list[int]
    pictures: NDArray[np.uint8]
    maps: NDArray[np.uint8]
    coats: NDArray[np.uint8]  # of each pixel: 0, or one more than the number of its paint
    paints: Paints | None = None  # the pictures are shown in

    def picture(self, at: int) -> NDArray[np.uint8]:
        return self.pictures[at] if self.paints is None else picture_in(self.paints, self.pictures[at], self.coats[at])

    def painted(self, paints: Paints) -> Footage:
        """The same film in other colours."""
        shots = self.shots
        if any(shot.lamp for shot in shots):
            shots = [replace(shot, lamp=paints[shot.lamp]) if shot.lamp in paints else shot for shot in shots]
        return replace(self, script=told_in(paints, self.script), shots=shots, paints=paints)

    @property
    def key(self) -> str:
        return f"{self.script.task}-{self.script.seed}"


def training_script(task: str, seed: int) -> Script:
    """With a wider manner than the benchmark's: how long something takes must tell little."""
    if split(seed) not in ("train", "tuning"):
        raise UsageError(
            f"Seed {seed} is for {split(seed)}: no model may be trained on it. Training seeds begin at 10000."
        )
    script, dice = write(task, seed), Dice(task, seed, "training manner")
    manner = replace(
        script.manner,
        speed=dice.uniform(0.7, 1.5),
        pause=dice.uniform(0.15, 0.6),
        regrasp=0.1,
        miss=dice.choice((0.0, 0.0, 0.2)),
        retreat=script.manner.retreat if script.manner.retreat == 1.0 else dice.choice((0.15, 0.5, 0.8)),
    )
    return replace(script, manner=manner)


def film(task: str, seed: int, folder: Path) -> bool:
    """False if the script could not be carried out: such an episode is left out."""
    import mujoco

    from compass_edge.sim.assets import panda_assets
    from compass_edge.sim.performance import perform
    from compass_edge.sim.world import World

    script = training_script(task, seed)
    worlds: list[World] = []
    states: list[NDArray[np.float64]] = []

    def on_frame(world: World) -> None:
        worlds[:] = [world]
        states.append(world.data.qpos.copy())

    performance = perform(script, panda_assets(), on_frame)
    if not performance.complete:
        return False
    frames = chosen_frames(performance.ends, len(performance.shots), Dice(task, seed, "stretch"))
    (world,) = worlds
    eyes = _Eyes(world, mujoco)
    made, maps, coats = [], [], []
    try:
        for frame in frames:
            world.data.qpos[:] = states[frame]
            mujoco.mj_forward(world.model, world.data)
            world.shine(performance.shots[frame].lamp)
            picture, seen, coat = eyes.look(world)
            made.append(picture)
            maps.append(seen)
            coats.append(coat)
    finally:
        eyes.close()
    stem = folder / f"{task}-{seed}"
    np.save(stem.with_suffix(".npy"), np.stack(made))
    np.save(stem.with_suffix(".seg.npy"), np.stack(maps))
    np.save(stem.with_suffix(".paint.npy"), np.stack(coats))
    with stem.with_suffix(".part").open("wb") as file:
        pickle.dump((script, performance.shots, performance.ends, frames), file)
    stem.with_suffix(".part").rename(stem.with_suffix(".pkl"))
    return True


def chosen_frames(ends: Sequence[int], count: int, dice: Dice) -> list[int]:
    """The first frame, a stretch of whole steps at every tick, and a few of the rest."""
    begins = [0, *ends[:-1]]
    first = dice.whole(0, len(ends) - 1) if dice.chance(0.7) else 0
    while first > 0 and (count - begins[first]) // EVERY < _LONGEST * 0.6:
        first -= 1
    start = begins[first] - begins[first] % EVERY
    stop = min(count, start + _LONGEST * EVERY)
    dense = set(range(start, stop, EVERY))
    return sorted(dense | set(range(0, count, _SPARSE)))


def is_training(key: str) -> bool:
    """Of the film with this name."""
    return int(key.split("-")[1]) >= TRAINING


def is_tuning(key: str) -> bool:
    return not is_training(key)


def load(folder: Path, part: Callable[[str], bool] = lambda key: True) -> list[Footage]:
    found = []
    for path in sorted(folder.glob("*.pkl")):
        if part(path.stem):
            with path.open("rb") as file:
                script, shots, ends, frames = pickle.load(file)
            pictures, coats = (np.load(path.with_suffix(end), mmap_mode="r") for end in (".npy", ".paint.npy"))
            maps = np.load(path.with_suffix(".seg.npy"))
            found.append(Footage(script, shots, ends, frames, pictures, maps, coats))
    return found


def halved(drawn: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture at half its size."""
    wide = drawn.astype(np.uint16)
    total = wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2]
    return ((total + 2) >> 2).astype(np.uint8)


class _Eyes:
    """Pictures at half their drawn size, which thing each cell shows, and which paint each pixel has."""

    def __init__(self, world: Any, mujoco: Any) -> None:
        model = world.model
        self._colours = mujoco.Renderer(model, 2 * SIDE, 2 * SIDE, max_geom=400)
        self._masks = mujoco.Renderer(model, SIDE, SIDE, max_geom=400)
        self._masks.enable_segmentation_rendering()
        self._masks.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._geom = int(mujoco.mjtObj.mjOBJ_GEOM)
        bodies = {model.body(name).id: index for index, name in enumerate(world.things)}
        self._of = np.full(model.ngeom + 1, NOTHING, np.uint8)
        for geom in range(model.ngeom):
            body = int(model.geom_bodyid[geom])
            parent = int(model.body_parentid[body])
            name = model.body(body).name
            if body in bodies or parent in bodies:
                self._of[geom] = bodies.get(body, bodies.get(parent))
            elif "finger" in name or "hand" in name or "gripper" in name or "tip" in name:
                self._of[geom] = HAND
            elif "link" in name:
                self._of[geom] = ARM
        lamp = [at for at in range(model.nmat) if model.material(at).name == "lamp"]
        self._bulbs = [geom for geom in range(model.ngeom) if int(model.geom_matid[geom]) in lamp]

    def look(self, world: Any) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        self._colours.update_scene(world.data, "front")
        picture = halved(self._colours.render())
        self._masks.update_scene(world.data, "front")
        found = self._masks.render()
        geoms = np.where(found[..., 1] == self._geom, found[..., 0], -1)
        return picture, self._of[geoms[CELL // 2 :: CELL, CELL // 2 :: CELL]], self._coats(world)[geoms]

    def _coats(self, world: Any) -> NDArray[np.uint8]:
        """Of every geom as it is painted now; the last is that of no geom."""
        shown = np.stack([COLOURS[paint] for paint in PAINTS])
        near = np.abs(world.model.geom_rgba[:, None, :3] - shown).max(-1) < 1e-3
        found = np.append(np.where(near.any(1), near.argmax(1) + 1, 0), 0).astype(np.uint8)
        found[self._bulbs] = PAINTS.index(world.lamp) + 1 if world.lamp in PAINTS else 0
        return found

    def close(self) -> None:
        self._colours.close()
        self._masks.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--films",
        type=int,
        default=14,
        help="training films of each task, twice as many of hard ones; one in seven for tuning",
    )
    parser.add_argument("--first", type=int, default=TRAINING, help="seed of the first training film")
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.rank < 0:
        return launched("training.footage", sys.argv[1:], given.crew)
    os.environ.setdefault("LP_NUM_THREADS", "1")
    choose_gl()
    seeds = [*range(1000, 1000 + max(given.films // 7, 1)), *range(given.first, given.first + given.films)]
    more = range(given.first + given.films, given.first + 2 * given.films)
    chosen = [
        *((task, seed) for seed in seeds for task in TASKS),
        *((task, seed) for seed in more for task in TASKS if task in HARD),
    ]
    for task, seed in chosen[given.rank :: given.crew]:
        if not (given.folder / f"{task}-{seed}.pkl").exists() and not film(task, seed, given.folder):
            print(f"{task}/{seed} was not completed, and is left out", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
