"""The benchmark on disk: episodes and negatives, rendered where they are missing, by as many processes as there are cores.

paths = ensure(["R1", "S2", "E1"], range(5), root)     # ROOT/R1/0.json, ...

An episode that is there and of this edition is left alone: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from pathlib import Path

from compass_edge.data.folder import write_episode_json
from compass_edge.errors import CompassError, EnvironmentFault, UsageError
from compass_edge.sim.assets import cache_folder, panda_assets
from compass_edge.sim.gl import choose_gl
from compass_edge.sim.negatives import NEGATIVES, SEED, negative_fields
from compass_edge.workers import workers

# Episodes that are ready, those there will be, and the one that became ready last.
OnProgress = Callable[[int, int, str], None]
Wanted = tuple[str, int]


def default_root(size: int = 448) -> Path:
    return cache_folder() / f"sim-{size}"


def ensure(
    tasks: Sequence[str], seeds: Iterable[int], root: Path | None = None, *, size: int = 448, jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> list[Path]:  # fmt: skip
    """The annotations of all these episodes; a negative (E1 ... M5) counts once, whatever the seeds."""
    require_mujoco()
    from compass_edge.sim.catalogue import TASKS, split
    from compass_edge.sim.rendering import episode_path

    root = root or default_root(size)
    seeds = list(seeds)
    for task in tasks:
        if task not in TASKS and task not in NEGATIVES:
            raise UsageError(f"There is no task '{task}'. There are: {', '.join([*TASKS, *NEGATIVES])}.")
    for seed in seeds:
        split(seed)
    negatives = [NEGATIVES[task] for task in tasks if task in NEGATIVES]
    positives = [(task, seed) for task in tasks if task in TASKS for seed in seeds]
    films = list(dict.fromkeys([*positives, *((negative.base, SEED) for negative in negatives)]))
    _render(films, root, size, jobs, on_progress)
    for negative in negatives:
        base = json.loads(episode_path(root, negative.base, SEED).read_text("utf-8"))
        video = f"../{negative.base}/{SEED}.mp4"
        path = episode_path(root, negative.id, SEED)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_episode_json(path, negative_fields(negative, base, video))
    return [episode_path(root, *wanted) for wanted in [*positives, *((negative.id, SEED) for negative in negatives)]]


def require_mujoco() -> None:
    try:
        import mujoco  # noqa: F401
    except ImportError as error:
        cure = "pip install 'compass-edge[sim]'" if sys.version_info >= (3, 11) else "use Python 3.11 or later"
        raise EnvironmentFault(f"The simulator needs MuJoCo 4: {cure}.") from error


def is_current(path: Path, size: int) -> bool:
    """Film and annotation are there, whole, in this size and of this edition."""
    from compass_edge.sim.rendering import EDITION

    if not path.is_file() or not path.with_suffix(".mp4").is_file():
        return False
    try:
        about = json.loads(path.read_text("utf-8"))["about"]
        return bool((about["simulator"], about["size"]) == (EDITION, size))
    except (ValueError, KeyError, TypeError, IndexError):  # not an annotation, or not of the simulator
        return False


def _render(films: Sequence[Wanted], root: Path, size: int, jobs: int | None, on_progress: OnProgress | None) -> None:
    from compass_edge.sim.rendering import episode_path

    missing = [wanted for wanted in films if not is_current(episode_path(root, *wanted), size)]
    done = len(films) - len(missing)
    if on_progress is not None:
        on_progress(done, len(films), "")
    if not missing:
        return
    choose_gl()
    panda_assets()  # once, before several processes want it
    os.environ.setdefault("LP_NUM_THREADS", "1")  # Mesa: one thread a process, as there is a process a core
    failures: list[str] = []
    with workers(jobs, len(missing)) as pool:
        running = {pool.submit(_work, task, seed, root, size): (task, seed) for task, seed in missing}
        for finished in as_completed(running):
            failure = finished.result()
            failures += [failure] if failure else []
            done += not failure
            if on_progress is not None:
                on_progress(done, len(films), "{}/{}".format(*running[finished]))
    if failures:
        raise CompassError(f"{len(failures)} of {len(films)} episodes could not be rendered. {failures[0]}")


def _work(task: str, seed: int, root: Path, size: int) -> str:
    from compass_edge.sim.rendering import render

    try:
        render(task, seed, root, size)
    except CompassError as error:
        return str(error)
    finally:
        gc.collect()  # a world and what draws it know each other: dozens of megabytes that would wait for the next round
    return ""
