"""Tasks of the simulator as episodes: what is on disk is used, what is missing is rendered."""

from __future__ import annotations

from pathlib import Path

from compass_edge.cli.eval_selection import OnRendered, Selection, parse_seeds, parse_tasks
from compass_edge.data.episode import Episode
from compass_edge.data.folder import read_episode
from compass_edge.sim.benchmark import ensure, require_mujoco

_SIZE = 448  # pixels, as the paper's films have about
_TEST_SEEDS = "0-4"


def rendered(chosen: Selection, cache: Path, jobs: int | None, on_rendered: OnRendered) -> list[Episode]:
    seeds = parse_seeds(chosen.seeds or _TEST_SEEDS)
    require_mujoco()
    from compass_edge.sim.catalogue import TASKS
    from compass_edge.sim.negatives import NEGATIVES

    known = [*((task.id, str(task.form)) for task in TASKS.values()), *((name, "") for name in NEGATIVES)]
    wanted = parse_tasks(chosen.tasks, known) if chosen.tasks is not None else []
    if chosen.negatives:
        wanted = list(dict.fromkeys([*wanted, *NEGATIVES]))
    root = cache / f"sim-{_SIZE}"
    paths = ensure(
        wanted, seeds, root, size=_SIZE, jobs=jobs, on_progress=lambda done, total, _: on_rendered(done, total)
    )
    return [read_episode(path, root) for path in paths]  # a negative's film is another episode's
