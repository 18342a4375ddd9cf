"""A rehearsal: the loop on whole episodes of tuning seeds, and what happened in those that went wrong.

python -m training.rehearsal --tasks S7,S8 --seeds 1000-1003                 # renders what is missing
python -m training.rehearsal --tasks all --seeds 1000 --package DIR          # other exports
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compass_edge.cli.eval_selection import parse_seeds
from compass_edge.data.episode import Episode
from compass_edge.data.folder import read_episode
from compass_edge.errors import UsageError
from compass_edge.eval.loop_run import run_loop
from compass_edge.loop.events import CompletionProposed, Event, Oriented, Reviewed, Stalled, StepBegun, Verified
from compass_edge.loop.plan import Plan
from compass_edge.loop.state import State
from compass_edge.presets import tiny
from compass_edge.sim.benchmark import default_root, ensure
from compass_edge.sim.catalogue import TASKS, split

_WRONG = 2.0  # of 100: above this error an episode is told


class Story:
    """What the loop did, a line each, beside where the steps of the film really end."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._plan: Plan | None = None

    def __call__(self, event: Event, _state: State) -> None:
        match event:
            case Oriented(plan=plan) | Reviewed(plan=plan) if plan is not None and plan != self._plan:
                self._plan = plan
                self.lines.append(f"{event.frame.seq:5} plan: {'; '.join(step.outcome for step in plan.steps)}")
            case StepBegun():
                self.lines.append(f"{event.frame.seq:5} step {event.k}: {event.subtask.sentence}")
            case CompletionProposed():
                self.lines.append(
                    f"{event.frame.seq:5}   {event.reason} {event.score:.2f}, middle frame {event.during.seq}"
                )
            case Verified():
                told = f"{event.start} | {event.during} | {event.candidate} | {event.change}: {event.verdict}"
                self.lines.append(f"{event.frame.seq:5}   {told}")
            case Stalled():
                self.lines.append(f"        stalled after {event.verifications}")
            case _:
                pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="all", help="such as S7,S8 (all)")
    parser.add_argument("--seeds", default="1000", metavar="A-B")
    parser.add_argument("--package", type=Path, default=tiny.FOLDER, help="the exports and their settings")
    parser.add_argument("--settings", type=Path, help="instead of the package's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="tell what happened in every episode")
    given = parser.parse_args()
    tasks, seeds = list(TASKS) if given.tasks == "all" else given.tasks.split(","), parse_seeds(given.seeds)
    for seed in seeds:
        if split(seed) != "tuning":
            raise UsageError(f"Seed {seed} is for {split(seed)}: a rehearsal is of tuning seeds, 1000-9999.")
    tiny.FOLDER = given.package
    models, errors = tiny.models(given.threads), []
    for episode in _episodes(tasks, seeds):
        rules = tiny.settings(episode.fps)
        rules = rules.overlaid(str(given.settings)) if given.settings else rules
        story = Story()
        found = run_loop(episode, models, rules, subscribers=(story,))
        errors.append(float(np.abs(np.asarray(found.values) - episode.progress()).mean()))
        print(f"{episode.id:8} {errors[-1]:5.1f}", flush=True)
        if given.all or errors[-1] > _WRONG:
            print(f"      ends of steps: {[step.end for step in episode.truth]} of {episode.frames}")
            print("\n".join(f"      {line}" for line in story.lines), flush=True)
    print(f"mean {np.mean(errors):.2f}, median {np.median(errors):.2f}, n = {len(errors)}")
    return 0


def _episodes(tasks: Sequence[str], seeds: Sequence[int]) -> list[Episode]:
    root = default_root()
    return [read_episode(path, root) for path in ensure(tasks, seeds, root)]


if __name__ == "__main__":
    sys.exit(main())
