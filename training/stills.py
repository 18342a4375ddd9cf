"""Stills: single moments of played episodes in many lights, colours and places of the camera, for the tower alone.

A film has one look, and a tower that has seen a few hundred looks confuses the next one. A played episode is drawn again in four rooms,
a dozen moments in each, every moment with its own colours, light and camera. FOLDER/TASK-SEED.still is a Footage like any other,
whose frames have nothing to do with one another.

Openings are the first moments of many more episodes, each with its whole script in the colours that were drawn: what an Orienter
plans from. FOLDER/TASK-SEED.opening. Strangers are pictures of other places (training.strangers), FOLDER/TASK-SEED.stranger.

    python -m training.stills FOLDER --episodes 8 --openings 20 --strangers 10
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from compass_edge.sim.arm import Arm
from compass_edge.sim.assets import panda_assets
from compass_edge.sim.catalogue import TASKS
from compass_edge.sim.dice import Dice
from compass_edge.sim.gl import choose_gl
from compass_edge.sim.look import Look
from compass_edge.sim.performance import perform
from compass_edge.sim.shot import Shot
from compass_edge.sim.tasks.draft import PAINTS
from compass_edge.sim.things import COLOURS, Thing
from compass_edge.sim.world import World
from training.crew import launched
from training.footage import HARD, Footage, _Eyes, training_script
from training.moments import MOMENTS, beside_changes
from training.paint import told_in
from training.strangers import looking, strangers

_ROOMS, _MOMENTS = 4, 12
_LOOKS = 8
_FIRST_SEED = 500_000


def stills(task: str, seed: int) -> list[Footage]:
    """A Footage of one frame each: things and state in the colours that were drawn."""
    script, dice = training_script(task, seed), Dice(task, seed, "stills")
    states: list[Any] = []
    performance = perform(script, panda_assets(), lambda world: states.append(world.data.qpos.copy()))
    telling = beside_changes(performance.shots)
    found = []
    for _ in range(_ROOMS):
        world = World(script.things, Look.drawn(dice), panda_assets(), lambda shot: None, {})
        painted = _painted(world, script.things)
        eyes = _Eyes(world, mujoco)
        for _ in range(_MOMENTS):
            frame = dice.choice(telling) if telling and dice.chance(MOMENTS) else dice.whole(0, len(states) - 1)
            paints = dict(zip(PAINTS, dice.shuffled(PAINTS), strict=True))
            shot = performance.shots[frame]
            world.data.qpos[:] = states[frame]
            _dress(world, Look.drawn(dice), painted, paints)
            mujoco.mj_forward(world.model, world.data)
            lamp = shot.lamp and paints.get(shot.lamp, shot.lamp)
            world.shine(lamp)
            picture, seen, coat = eyes.look(world)
            things = tuple(replace(thing, colour=paints.get(thing.colour, thing.colour)) for thing in script.things)
            shown: Shot = replace(shot, lamp=lamp)
            found.append(
                Footage(replace(script, things=things), [shown], [], [0], picture[None], seen[None], coat[None])
            )
        eyes.close()
    return found


def _painted(world: World, things: tuple[Thing, ...]) -> list[tuple[int, str]]:
    """The geoms that have the colour of their thing."""
    model, found = world.model, []
    bodies = {model.body(thing.name).id: thing for thing in things}
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        thing = bodies.get(body, bodies.get(int(model.body_parentid[body])))
        if thing is not None and np.allclose(model.geom_rgba[geom, :3], COLOURS[thing.colour], atol=1e-3):
            found.append((geom, thing.colour))
    return found


def _dress(world: World, look: Look, painted: list[tuple[int, str]], paints: dict[str, str]) -> None:
    """Light, camera and colours, in place."""
    model = world.model
    for geom, colour in painted:
        model.geom_rgba[geom, :3] = COLOURS[paints.get(colour, colour)]
    camera = model.camera("front").id
    model.cam_pos[camera] = look.camera
    mujoco.mju_mat2Quat(model.cam_quat[camera], looking(look.camera, look.camera_at).flatten())
    model.light_pos[0], model.light_dir[0] = (
        look.light_from,
        -np.array(look.light_from) / np.linalg.norm(look.light_from),
    )
    model.light_diffuse[0] = look.light
    model.vis.headlight.ambient[:] = look.ambient


def openings(task: str, seed: int) -> list[Footage]:
    """The moment before anything happens, in several looks; the script is told in their colours."""
    script, dice = training_script(task, seed), Dice(task, seed, "openings")
    shots: list[Shot] = []
    world = World(script.things, script.look, panda_assets(), shots.append, script.switches)
    painted, found = _painted(world, script.things), []
    arm = Arm(world, script.manner, Dice(task, seed, "motion"))
    world.shine(None)
    arm.ready()
    arm.wait(0.3)
    eyes = _Eyes(world, mujoco)
    for _ in range(_LOOKS):
        paints = dict(zip(PAINTS, dice.shuffled(PAINTS), strict=True))
        _dress(world, Look.drawn(dice), painted, paints)
        mujoco.mj_forward(world.model, world.data)
        picture, seen, coat = eyes.look(world)
        found.append(Footage(told_in(paints, script), [world.shot()], [], [0], picture[None], seen[None], coat[None]))
    eyes.close()
    return found


def load_stills(folder: Path, kind: str = "still") -> list[Footage]:
    found: list[Footage] = []
    for path in sorted(folder.glob(f"*.{kind}")):
        with path.open("rb") as file:
            found += pickle.load(file)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--episodes", type=int, default=4, help="of each task, 48 stills each")
    parser.add_argument(
        "--openings", type=int, default=20, help="of each task, 8 looks each; twice as many of hard ones"
    )
    parser.add_argument("--strangers", type=int, default=10, help="scenes of each task, 4 views each")
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.rank < 0:
        return launched("training.stills", sys.argv[1:], given.crew)
    os.environ.setdefault("LP_NUM_THREADS", "1")
    choose_gl()
    for make, kind, count in (
        (stills, "still", given.episodes),
        (openings, "opening", given.openings),
        (strangers, "stranger", given.strangers),
    ):
        seeds = range(_FIRST_SEED, _FIRST_SEED + 2 * count)
        chosen = [(task, seed) for seed in seeds for task in TASKS if seed < _FIRST_SEED + count or task in HARD]
        for task, seed in chosen[given.rank :: given.crew]:
            path = given.folder / f"{task}-{seed}.{kind}"
            if not path.exists():
                made = make(task, seed)
                with path.with_suffix(".part").open("wb") as file:
                    pickle.dump(made, file)
                path.with_suffix(".part").rename(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
