"""The check of the benchmark: every script is completed, every annotation agrees with the state, every state comes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compass_edge.data.episode import Episode
from compass_edge.data.folder import read_episode
from compass_edge.eval.floor import GATE
from compass_edge.sim.assets import panda_assets
from compass_edge.sim.audit import audit
from compass_edge.sim.benchmark import ensure
from compass_edge.sim.catalogue import TASKS, write
from compass_edge.sim.negatives import NEGATIVES, SEED, judge_negative
from compass_edge.sim.performance import perform
from compass_edge.sim.scenes import context_floors
from compass_edge.workers import workers

OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class EpisodeCheck:
    id: str
    steps: int
    frames: int
    completed: bool
    state_hash: str
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TaskCheck:
    task: str
    form: str
    forms: list[str]
    K: list[int]  # of each seed
    frames: list[int]
    completed: int
    floor: float | None  # None: without pictures nobody knows what can be seen
    above_floor: bool | None
    state_hash: list[str]


@dataclass(frozen=True, slots=True)
class Check:
    tasks: list[TaskCheck]
    negatives: int
    wrong: list[str]

    @property
    def completed(self) -> int:
        return sum(task.completed for task in self.tasks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "tasks": len(self.tasks),
            "episodes": sum(len(task.frames) for task in self.tasks),
            "completed": self.completed,
            "above_floor": sum(bool(task.above_floor) for task in self.tasks),
            "gate": GATE,
            "negatives": self.negatives,
            "frames": sum(sum(task.frames) for task in self.tasks),
            "steps": sum(sum(task.K) for task in self.tasks),
            "wrong": self.wrong,
            "per_task": [asdict(task) for task in self.tasks],
        }


def check(
    tasks: Sequence[str], seeds: Sequence[int], root: Path, *, size: int = 448, negatives: bool = True,
    jobs: int | None = None, on_progress: OnProgress | None = None,
) -> Check:  # fmt: skip
    """Of what is rendered in `root`; what is missing there is rendered first."""
    told = [*NEGATIVES] if negatives else []
    paths = ensure([*tasks, *told], seeds, root, size=size, jobs=jobs, on_progress=on_progress)
    episodes = [read_episode(path, root) for path in paths[: len(tasks) * len(seeds)]]
    checks = _each(_check_episode, [(episode.id, root) for episode in episodes], jobs, on_progress)
    wrong = [sentence for one in checks for sentence in one.wrong]
    rows = []
    for task in tasks:
        own = [episode for episode in episodes if episode.task == task]
        floor = context_floors(own).tasks[task]
        rows.append(_row(task, [one for one in checks if one.id.startswith(f"{task}/")], own[0], floor.floor))
    found = [read_episode(root / name / f"{SEED}.json", root) for name in told]
    bad = [sentence for episode in found for sentence in judge_negative(episode)]
    return Check(rows, len(found) - len({sentence.split()[0] for sentence in bad}), [*wrong, *bad])


def check_motion(
    tasks: Sequence[str], seeds: Sequence[int], *, jobs: int | None = None, on_progress: OnProgress | None = None
) -> Check:
    """Without pictures: whether every script is completed, and the states' hashes."""
    panda_assets()
    wanted = [(f"{task}/{seed}", None) for task in tasks for seed in seeds]
    checks = _each(_check_episode, wanted, jobs, on_progress)
    rows = [_row(task, [one for one in checks if one.id.startswith(f"{task}/")], None, None) for task in tasks]
    return Check(rows, 0, [sentence for one in checks for sentence in one.wrong])


def _row(task: str, checks: Sequence[EpisodeCheck], episode: Episode | None, floor: float | None) -> TaskCheck:
    return TaskCheck(
        task=task,
        form=TASKS[task].form,
        forms=list(episode.forms) if episode is not None else [],
        K=[one.steps for one in checks],
        frames=[one.frames for one in checks],
        completed=sum(one.completed for one in checks),
        floor=None if floor is None else round(floor, 2),
        above_floor=None if floor is None else floor > GATE,
        state_hash=[one.state_hash for one in checks],
    )


def _check_episode(name: str, root: Path | None) -> EpisodeCheck:
    """The episode is performed again: the same state must come out."""
    task, _, seed = name.partition("/")
    again = perform(write(task, int(seed)), panda_assets())
    now, wrong = again.state_hash(), []
    if not again.complete:
        wrong.append(f"{name} was not completed: step {len(again.ends) + 1} never came true.")
    if root is not None:
        episode = read_episode(root / task / f"{seed}.json", root)
        wrong += audit(episode)
        if episode.tracks["scene"]["state_hash"] != now:
            wrong.append(
                f"{name} was rendered from the state {episode.tracks['scene']['state_hash']}, and {now} came now."
            )
    return EpisodeCheck(name, len(again.script.steps), len(again.shots), again.complete, now, wrong)


def _each(
    work: Callable[[str, Path | None], EpisodeCheck], wanted: Sequence[tuple[str, Path | None]], jobs: int | None,
    on_progress: OnProgress | None,
) -> list[EpisodeCheck]:  # fmt: skip
    found = []
    with workers(jobs, len(wanted)) as pool:
        for one in pool.map(work, *zip(*wanted, strict=True)):
            found.append(one)
            if on_progress is not None:
                on_progress(len(found), len(wanted), one.id)
    return found
