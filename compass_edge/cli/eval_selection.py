"""Which episodes `compass-edge eval` runs: data sets by path, tasks of the simulator by name and seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from compass_edge.data.dataset import open_dataset
from compass_edge.data.episode import FORMS, Episode
from compass_edge.errors import UsageError

_SHOWN = 5  # names in an error
_MOST = 100_000  # seeds in a range: more is a slip of the finger
OnRendered = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Selection:
    paths: Sequence[str]
    tasks: str | None
    seeds: str | None
    negatives: bool
    limit: int | None


def parse_seeds(text: str) -> list[int]:
    """`0-4`, `3`, `0-2,7`."""
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
        if found is None:
            raise UsageError(f"--seeds must be seeds or ranges such as 0-4 or 0-2,7, and '{text}' came.")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise UsageError(f"--seeds: a range goes from its lower end to its higher one, and '{part.strip()}' came.")
        if last - first >= _MOST:
            raise UsageError(f"--seeds: a range may have {_MOST} seeds, and '{part.strip()}' has {last - first + 1}.")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def parse_tasks(text: str, known: Sequence[tuple[str, str]]) -> list[str]:
    """`all`, forms and names, mixed. `known`: each task and its form; a negative, which has none, must be named."""
    tasks: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if part == "all":
            tasks += [task for task, form in known if form]
        elif part in FORMS:
            tasks += [task for task, form in known if form == part]
        else:
            found = next((task for task, _ in known if task.lower() == part.lower()), None)
            if found is None:
                names = ", ".join(task for task, _ in known)
                raise UsageError(f"There is no task '{part}'. There are: {names}; and all, {', '.join(FORMS)}.")
            tasks.append(found)
    return list(dict.fromkeys(tasks))


def select(chosen: Selection, cache: Path, jobs: int | None, on_rendered: OnRendered) -> list[Episode]:
    """Rendered if need be, all annotated, every id once."""
    if chosen.seeds is not None and chosen.tasks is None:
        raise UsageError("--seeds are seeds of tasks: say which with --tasks, for example --tasks all.")
    if not chosen.paths and chosen.tasks is None and not chosen.negatives:
        raise UsageError("Name data sets, or tasks of the simulator with --tasks. See compass-edge eval --help.")
    episodes: dict[str, Episode] = {}
    where: dict[str, str] = {}
    for path in chosen.paths:
        for episode in open_dataset(path).episodes():
            if episode.id in episodes:
                raise UsageError(
                    f"Episode '{episode.id}' is both in '{where[episode.id]}' and in '{path}': leave one out."
                )
            episodes[episode.id], where[episode.id] = episode, path
    if chosen.tasks is not None or chosen.negatives:
        from compass_edge.cli.eval_rendering import rendered  # the simulator: only who asks for its tasks needs it

        for episode in rendered(chosen, cache, jobs, on_rendered):
            if episode.id in where:
                raise UsageError(
                    f"Episode '{episode.id}' is both in '{where[episode.id]}' and a task of the simulator."
                )
            episodes[episode.id] = episode
    _check_annotated(episodes.values())
    return limited(list(episodes.values()), chosen.limit)


def _check_annotated(episodes: Iterable[Episode]) -> None:
    bare = [episode.id for episode in episodes if episode.steps is None]
    if bare:
        names = ", ".join(f"'{name}'" for name in bare[:_SHOWN]) + (", ..." if len(bare) > _SHOWN else "")
        raise UsageError(
            f"Without annotation there is no truth to compare with, and it is missing in {len(bare)} "
            f"episode{'s' * (len(bare) > 1)} ({names}). Mark the steps with compass-edge data annotate."
        )


def limited(episodes: Sequence[Episode], limit: int | None) -> list[Episode]:
    """The first of every task, then the second of every task, until there are enough; in their old order."""
    if limit is None or len(episodes) <= limit:
        return list(episodes)
    by_task: dict[str, list[Episode]] = {}
    for episode in episodes:
        by_task.setdefault(f"{episode.kind} {episode.task}", []).append(episode)
    rounds = [one for together in zip_longest(*by_task.values()) for one in together if one is not None]
    kept = {episode.id for episode in rounds[:limit]}
    return [episode for episode in episodes if episode.id in kept]
