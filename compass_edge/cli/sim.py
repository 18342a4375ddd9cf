"""`compass-edge sim`: the simulator's tasks, their films, and the proof that all is as it says."""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.cli.whole import at_least
from compass_edge.errors import UsageError

if TYPE_CHECKING:
    from compass_edge.sim.check import Check
    from compass_edge.sim.script import Script

_EXAMPLES = """\
Examples:
  compass-edge sim list                             24 tasks, 15 negatives
  compass-edge sim render --tasks R1 --seeds 0      one episode, film and annotation, into the cache
  compass-edge sim render --tasks all --out data    the whole test set: 120 episodes, about 45 CPU-minutes
  compass-edge sim check --json                     renders what is missing, then checks every frame of everything
  compass-edge sim check --no-pictures              the motions alone: no graphics needed, a few minutes

Seeds: 0-4 are the test set, 1000-9999 for tuning, 10000 and more for training. The same seed gives the same states everywhere, and
the same pictures with the same Mesa. Stopped with Ctrl-C, the same command goes on where it was.
"""
_TEST = "0-4"
_LETTERS = {"state": "S", "sequence": "Q", "recurrence": "R"}


def run(arguments: argparse.Namespace) -> int:
    if arguments.action != "list":
        from compass_edge.sim.benchmark import require_mujoco

        require_mujoco()
    handlers = {"list": _list, "render": _render, "check": _check}
    return handlers[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    from compass_edge.sim.catalogue import TASKS, write
    from compass_edge.sim.negatives import NEGATIVES

    scripts = {name: write(name, 0) for name in TASKS}
    if arguments.json:
        tasks = [
            {"task": name, "form": task.form, "mix": _mix(scripts[name]), "title": task.title, "steps": len(scripts[name].steps),
             "instruction": scripts[name].instruction}
            for name, task in TASKS.items()
        ]  # fmt: skip
        negatives = [
            {"negative": one.id, "kind": one.kind, "film": one.base, "ends_at": one.ends_at}
            for one in NEGATIVES.values()
        ]
        print(json.dumps({"tasks": tasks, "negatives": negatives}, indent=1))
        return 0
    for name, script in scripts.items():
        print(f"{name}  {_forms(script):<13} {len(script.steps):>2} steps  {script.instruction}")
    print(
        "\nA form is what steps need from the past; after a plus: S state, Q sequence, R recurrence, where a task mixes them."
    )
    print("\nNegatives: a film whose instruction it does not match, and the progress that is true at its end")
    for one in NEGATIVES.values():
        print(f"{one.id}  {one.kind:<11} film of {one.base}  {one.ends_at:5.1f}")
    return 0


def _mix(script: Script) -> list[str]:
    """The forms that its steps need beside the main one."""
    from compass_edge.data.episode import FORMS

    return [form for form in FORMS if form != script.form and any(form in step.forms for step in script.steps)]


def _forms(script: Script) -> str:
    mix = "".join(_LETTERS[form] for form in _mix(script))
    return f"{script.form} +{mix}" if mix else script.form


def _render(arguments: argparse.Namespace) -> int:
    from compass_edge.sim.benchmark import ensure

    tasks, seeds, root = _wanted(arguments)
    with ProgressBar("Rendering", None) as bar:
        paths = ensure(
            tasks,
            seeds,
            root,
            size=arguments.size,
            jobs=arguments.jobs,
            on_progress=lambda done, total, _: bar.update(done, total),
        )
    if arguments.json:
        print(json.dumps({"root": str(root), "episodes": [str(path) for path in paths]}, indent=1))
    else:
        print(f"{len(paths)} episodes in {root}: a film (.mp4) and its annotation (.json) each.")
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"This took {(spent.ru_utime + spent.ru_stime) / 60:.1f} CPU-minutes.")
        print(f"Look at one:  compass-edge data inspect {paths[0]}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from compass_edge.sim.check import check, check_motion

    tasks, seeds, root = _wanted(arguments)
    with ProgressBar("Checking", None) as bar:

        def on_progress(done: int, total: int, _: str) -> None:
            bar.update(done, total)

        if arguments.no_pictures:
            found = check_motion(tasks, seeds, jobs=arguments.jobs, on_progress=on_progress)
        else:
            whole = arguments.tasks == "all"
            found = check(
                tasks, seeds, root, size=arguments.size, negatives=whole, jobs=arguments.jobs, on_progress=on_progress
            )
    if arguments.json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        _show(found)
    return 1 if found.wrong else 0


def _show(found: Check) -> None:
    print("task  form        steps   frames  completed  floor")
    for task in found.tasks:
        floor = "     -" if task.floor is None else f"{task.floor:6.2f}{'' if task.above_floor else '  control'}"
        steps = f"{min(task.K)}-{max(task.K)}" if min(task.K) != max(task.K) else str(task.K[0])
        print(f"{task.task:<5} {task.form:<11} {steps:>5} {sum(task.frames):>8} {task.completed:>10} {floor}")
    totals = found.to_dict()
    print(
        f"{totals['tasks']} tasks, {totals['completed']} of {totals['episodes']} episodes completed, {totals['above_floor']} tasks "
        f"above the floor of {totals['gate']:g}, {totals['negatives']} negatives."
    )
    for sentence in found.wrong:
        print(f"wrong: {sentence}")


def _wanted(arguments: argparse.Namespace) -> tuple[list[str], list[int], Path]:
    from compass_edge.cli.eval_selection import parse_seeds, parse_tasks
    from compass_edge.sim.benchmark import default_root
    from compass_edge.sim.catalogue import TASKS, split
    from compass_edge.sim.negatives import NEGATIVES

    known = [*((task.id, str(task.form)) for task in TASKS.values())]
    if arguments.action == "render":
        known += [(name, "") for name in NEGATIVES]
    tasks = parse_tasks(arguments.tasks, known)
    seeds = parse_seeds(arguments.seeds)
    for seed in seeds:
        split(seed)
    root = Path(arguments.out) if arguments.out else default_root(arguments.size)
    if root.exists() and not root.is_dir():
        raise UsageError(f"--out must name a folder, and '{root}' is a file.")
    return tasks, seeds, root


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "sim",
        help="the simulator: tasks whose progress a frame does not show, with exact truth",
        description="ContextProgress-Sim: a Panda arm at a table, 24 tasks in three forms, and the truth about every frame.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="the tasks and the negatives")
    listed.add_argument("--json", action="store_true", help="print as JSON")
    for name, about in (
        ("render", "film episodes and write their annotations"),
        ("check", "prove that scripts complete, annotations agree with the state, and states repeat"),
    ):
        action = actions.add_parser(name, help=about, description=about)
        action.add_argument(
            "--tasks", default="all", metavar="LIST", help="S1,Q2, state, sequence, recurrence or all (all)"
        )
        action.add_argument(
            "--seeds", default=_TEST, metavar="A-B", help="such as 0-4 or 10000,10005 (0-4, the test set)"
        )
        action.add_argument("--out", metavar="DIR", help="where they are kept (~/.cache/compass-edge/sim-SIZE)")
        action.add_argument("--size", type=int, choices=(448, 224), default=448, help="pixels of a side (448)")
        action.add_argument("--jobs", type=at_least(1), metavar="N", help="processes (one a core)")
        action.add_argument("--json", action="store_true", help="print as JSON")
        if name == "check":
            action.add_argument(
                "--no-pictures", action="store_true", help="the motions alone, without films and floors"
            )
    parser.set_defaults(run=run)
