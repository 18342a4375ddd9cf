"""Tasks of the simulator as episodes: what is on disk is used, what is missing is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from compass_edge.cli.eval_selection import OnRendered, Selection, parse_seeds, parse_tasks
from compass_edge.data.episode import Episode
from compass_edge.data.folder import read_episode
from compass_edge.sim.benchmark import ensure, require_mujoco
from compass_edge.sim.catalogue import TASKS, TEST_SEEDS
from compass_edge.sim.negatives import NEGATIVES, SEED

_SIZE = 448  # pixels, as the paper's films have about
_TEST_SEEDS = "0-4"


def rendered(chosen: Selection, cache: Path, jobs: int | None, on_rendered: OnRendered) -> list[Episode]:
    seeds = parse_seeds(chosen.seeds or _TEST_SEEDS)
    require_mujoco()
    known = [*((task.id, str(task.form)) for task in TASKS.values()), *((name, "") for name in NEGATIVES)]
    wanted = parse_tasks(chosen.tasks, known) if chosen.tasks is not None else []
    if chosen.negatives:
        wanted = list(dict.fromkeys([*wanted, *NEGATIVES]))
    root = _root(cache)
    paths = ensure(
        wanted, seeds, root, size=_SIZE, jobs=jobs, on_progress=lambda done, total, _: on_rendered(done, total)
    )
    return [read_episode(path, root) for path in paths]  # a negative's film is another episode's


def suite_episodes(
    limit: int | None, seeds: str | None, cache: Path, jobs: int | None, on_rendered: OnRendered
) -> list[Episode]:
    """The test episodes and the negatives, or those of other seeds; with a limit the first of them, and no more is rendered."""
    root, wanted = _root(cache), suite_names(limit, parse_seeds(seeds) if seeds is not None else None)
    done = 0

    def on_progress(ready: int, _total: int, _name: str) -> None:
        on_rendered(done + ready, len(wanted))

    for seed in sorted({seed for _, seed in wanted}):
        tasks = [task for task, of in wanted if of == seed]
        filmed = [] if seed == SEED else [seed]  # a negative has one film, whatever the seeds
        ensure(tasks, filmed, root, size=_SIZE, jobs=jobs, on_progress=on_progress)
        done += len(tasks)
    return [read_episode(root / task / f"{seed}.json", root) for task, seed in wanted]


def suite_names(limit: int | None = None, seeds: Sequence[int] | None = None) -> list[tuple[str, int]]:
    """Tasks with their seeds: one of each form and each kind of negative in turn, and every task before any comes again. Whoever
    names seeds gets no negatives: these have films of their own, which nothing may be tuned on."""
    negatives = NEGATIVES if seeds is None else {}
    seeds = TEST_SEEDS if seeds is None else seeds
    rows = [[task for task in (*TASKS, *negatives) if task.startswith(letter)] for letter in "SQREXM"]
    turns = [task for turn in zip_longest(*rows) for task in turn if task is not None]
    first = [(task, SEED if task in negatives else seeds[0]) for task in turns]
    again = [(task, seed) for seed in seeds[1:] for task in turns if task in TASKS]
    chosen = set([*first, *again][:limit])
    order = [*((task, seed) for task in TASKS for seed in seeds), *((task, SEED) for task in negatives)]
    return [name for name in order if name in chosen]


def _root(cache: Path) -> Path:
    return cache / f"sim-{_SIZE}"
