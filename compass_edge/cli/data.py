"""`compass-edge data`: what a data set is, an episode on one sheet, and marking the steps of a video by hand."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from compass_edge.cli import data_annotate
from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.errors import UsageError

if TYPE_CHECKING:
    from compass_edge.data.dataset import Dataset
    from compass_edge.data.episode import Episode

_FORMATS = ("folder", "lerobot", "rmbench", "robodojo", "libero_mem", "robodopamine", "video")
_LISTED = 20


def run_inspect(arguments: argparse.Namespace) -> int:
    from compass_edge.data.dataset import find_episode, open_dataset

    dataset = open_dataset(
        arguments.path, arguments.format, task=arguments.task, camera=arguments.camera, flip=arguments.flip
    )
    episode = None
    if arguments.episode is not None:
        episode = find_episode(dataset, arguments.episode)
    elif arguments.out is not None:
        episode = next(dataset.episodes())
    sheet = None
    if episode is not None and arguments.out is not None:
        from compass_edge.data.contact_sheet import write_contact_sheet

        sheet = str(write_contact_sheet(episode, arguments.out, shown=arguments.frames))
    if episode is not None:
        described = _episode_fields(episode)
        if arguments.json:
            print(json.dumps({**described, "steps": _step_fields(episode), "sheet": sheet}, indent=2))
        else:
            print(_episode_text(episode) + (f"\nsheet       {sheet}" if sheet else ""))
        return 0
    rows = _all_fields(dataset)
    about = {"name": dataset.name, "format": dataset.format, "episodes": len(rows), **_totals(rows)}
    print(
        json.dumps({**about, "list": rows}, indent=2) if arguments.json else _dataset_text(about, rows, arguments.path)
    )
    return 0


def _all_fields(dataset: Dataset) -> list[dict[str, Any]]:
    rows = []
    with ProgressBar("reading", len(dataset)) as bar:
        for episode in dataset.episodes():
            rows.append(_episode_fields(episode))
            bar.update(len(rows))
    return rows


def _episode_fields(episode: Episode) -> dict[str, Any]:
    annotated = episode.steps is not None
    return {
        "id": episode.id,
        "task": episode.task,
        "instruction": episode.instruction,
        "frames": episode.frames,
        "fps": episode.fps,
        "annotated": annotated,
        "K": episode.size if annotated else None,
        "completed": episode.completed if annotated else None,
        "forms": list(episode.forms) or ([episode.form] if episode.form else []),
        "kind": episode.kind,
    }


def _step_fields(episode: Episode) -> list[dict[str, Any]] | None:
    if episode.steps is None:
        return None
    steps = zip(episode.begins, episode.steps, strict=True)
    return [{**asdict(step), "begin": begin, "facts": dict(step.facts)} for begin, step in steps]


def _totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    forms: dict[str, int] = {}
    for row in rows:
        for form in row["forms"]:
            forms[form] = forms.get(form, 0) + 1
    return {
        "annotated": sum(row["annotated"] for row in rows),
        "frames": sum(row["frames"] for row in rows),
        "seconds": round(sum(row["frames"] / row["fps"] for row in rows), 1),
        "steps": sum(row["K"] or 0 for row in rows),
        "forms": forms,
    }


def _dataset_text(about: dict[str, Any], rows: list[dict[str, Any]], path: str) -> str:
    forms = ", ".join(f"{count} {form}" for form, count in about["forms"].items())
    lines = [
        f"data set    {about['name']} ({about['format']})",
        f"episodes    {about['episodes']}, {about['annotated']} annotated with {about['steps']} steps"
        + (f": {forms}" if forms else ""),
        f"length      {about['frames']} frames, {about['seconds']:g} s",
        "",
    ]
    wide = max(len("episode"), *(len(row["id"]) for row in rows[:_LISTED]))
    lines.append(f"{'episode':{wide}}  {'frames':>6}  {'fps':>5}  {'K':>3}  forms")
    for row in rows[:_LISTED]:
        steps = "-" if row["K"] is None else row["K"]
        forms = " + ".join(row["forms"]) if row["annotated"] else "not annotated"
        kind = "" if row["kind"] == "positive" else f"  {row['kind']}"
        lines.append(f"{row['id']:{wide}}  {row['frames']:6}  {row['fps']:5.4g}  {steps:>3}  {forms}{kind}".rstrip())
    if len(rows) > _LISTED:
        lines.append(f"... and {len(rows) - _LISTED} more; --json lists them all")
    lines += ["", f"Next: compass-edge data inspect {path} --episode '{rows[0]['id']}' --out sheet.png"]
    return "\n".join(lines)


def _episode_text(episode: Episode) -> str:
    lines = [
        f"episode     {episode.id}" + ("" if episode.kind == "positive" else f" ({episode.kind})"),
        f"instruction {episode.instruction}",
        f"length      {episode.frames} frames at {episode.fps:g} fps, {episode.frames / episode.fps:.1f} s",
    ]
    if episode.steps is None:
        return "\n".join([*lines, "steps       not annotated: `compass-edge data annotate` marks them"])
    lines.append(f"steps       {episode.size}, of which {episode.completed} complete before the film ends")
    for place, (begin, step) in enumerate(zip(episode.begins, episode.steps, strict=True), 1):
        forms = f"  [{' + '.join(step.forms)}]" if step.forms else ""
        lines.append(f"  {place:3}  {begin:6} to {step.end:6}  {step.sentence}{forms}")
    return "\n".join(lines)


def _frames(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 400:
        raise argparse.ArgumentTypeError(f"expected 1 to 400, got {text}")
    return value


def _needs_action(_arguments: argparse.Namespace) -> int:
    raise UsageError(
        "Say what to do with the data: `compass-edge data inspect PATH` or `compass-edge data annotate VIDEO`."
    )


def register(commands: Any) -> None:
    data = commands.add_parser(
        "data",
        help="look into a data set, mark the steps of a video",
        description="Reads our own format (mp4 + json), LeRobot v3, RMBench, RoboDojo, LIBERO-Mem, Robo-Dopamine and plain "
        "videos. HDF5 and parquet need `pip install 'compass-edge[data]'`.",
    )
    data.set_defaults(run=_needs_action)
    actions = data.add_subparsers(dest="action", metavar="ACTION")
    inspect = actions.add_parser(
        "inspect",
        help="what a data set is, and one episode as a contact sheet",
        description="Prints what lies at PATH and its episodes. With --episode one of them and its steps; with --out a PNG of "
        "its frames, annotation and progress.",
        epilog="Examples:\n  compass-edge data inspect episode.mp4\n"
        "  compass-edge data inspect my_lerobot_set --camera wrist --json\n"
        "  compass-edge data inspect RMBench/data --episode press_button/demo_clean/3 --out sheet.png",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inspect.add_argument("path", help="a data set's folder, or one of its files")
    inspect.add_argument("--episode", metavar="ID", help="one episode, by its id or the end of it")
    inspect.add_argument(
        "--out", metavar="SHEET.png", help="write the contact sheet of that episode, or of the first one"
    )
    inspect.add_argument(
        "--frames", type=_frames, default=24, metavar="N", help="evenly spaced frames of the sheet (24)"
    )
    inspect.add_argument("--format", choices=_FORMATS, help="what it is; by default it is found out")
    inspect.add_argument("--task", metavar="TEXT", help="the instruction of a plain video")
    inspect.add_argument("--camera", metavar="NAME", help="which camera, by the name that the data set gives it")
    inspect.add_argument("--flip", action="store_true", help="LIBERO-Mem's pictures are upside down: turn them")
    inspect.add_argument("--json", action="store_true", help="print it as JSON")
    inspect.set_defaults(run=run_inspect)
    data_annotate.register(actions)
