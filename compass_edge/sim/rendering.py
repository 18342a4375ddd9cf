"""Rendering: an episode of the simulator as film and annotation, in our folder format: ROOT/TASK/SEED.mp4 and .json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco

from compass_edge.data.film_writer import FilmWriter
from compass_edge.data.folder import write_episode_json
from compass_edge.errors import CompassError
from compass_edge.sim.assets import panda_assets
from compass_edge.sim.camera import Camera
from compass_edge.sim.catalogue import write
from compass_edge.sim.performance import Performance, perform
from compass_edge.sim.tracks import tracks
from compass_edge.sim.world import FPS, World

EDITION = 3  # of tasks, motions and looks: what was rendered by another one is rendered again


def render(task: str, seed: int, root: Path, size: int = 448) -> Path:
    """Films an episode and returns its annotation. A script that cannot be carried out leaves nothing behind."""
    path = episode_path(root, task, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    script = write(task, seed)
    visible: list[frozenset[str]] = []
    cameras: list[Camera] = []
    with FilmWriter(path.with_suffix(".mp4"), FPS, size, size) as film:

        def on_frame(world: World) -> None:
            if not cameras:
                cameras.append(Camera(world, size))
            visible.append(cameras[0].visible(world))
            film.add(cameras[0].picture(world))

        try:
            performance = perform(script, panda_assets(), on_frame)
        finally:
            for camera in cameras:
                camera.close()
        _check_complete(performance)
    about = {"simulator": EDITION, "size": size, "mujoco": mujoco.__version__}
    write_episode_json(path, {**fields(performance, visible), "about": about})
    return path


def fields(performance: Performance, visible: list[frozenset[str]]) -> dict[str, Any]:
    """The annotation, as the folder format has it."""
    script = performance.script
    steps = [
        {
            "sentence": step.sentence, "end": end, "forms": list(step.forms), "before": step.before, "tau": step.tau,
            "after": step.after, "completion": step.completion, "facts": dict(step.facts),
        }
        for step, end in zip(script.steps, performance.ends, strict=True)
    ]  # fmt: skip
    return {
        "id": f"{script.task}/{script.seed}",
        "task": script.task,
        "instruction": script.instruction,
        "fps": float(FPS),
        "frames": len(performance.shots),
        "form": script.form,
        "kind": "positive",
        "steps": steps,
        "tracks": tracks(performance, visible),
    }


def episode_path(root: Path, task: str, seed: int) -> Path:
    return root / task / f"{seed}.json"


def _check_complete(performance: Performance) -> None:
    if not performance.complete:
        script = performance.script
        step = script.steps[len(performance.ends)]
        raise CompassError(
            f"Episode {script.task}/{script.seed} of the simulator was not completed: '{step.sentence}' never came true. "
            "This is a fault of the simulator: please report it with this line."
        )
