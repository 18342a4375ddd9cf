"""`compass-edge models export`: a checkpoint becomes graphs that the engines run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_edge.cli.byte_size import ByteBars, byte_size
from compass_edge.cli.whole import at_least
from compass_edge.engines.file_record import MANIFEST
from compass_edge.engines.manifest import check_name, read_manifest
from compass_edge.engines.store import PARTIAL, models_folder, remove
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError
from compass_edge.export.recipe import DIALECTS, EMBEDDINGS, KINDS, PRECISIONS, Recipe

if TYPE_CHECKING:
    from compass_edge.engines.manifest import Manifest

_ABOUT = """\
Builds ONNX graphs from a checkpoint, without torch: config.json and safetensors, one file or shards, in the layout of the model
hubs. Qwen3-VL, Qwen3.5 and Qwen2.5-VL become a model that answers questions; a RoboMeter checkpoint becomes one that scores progress.
Weights pass through one at a time. At the end the model is asked one question, whose answer goes into its manifest: that takes as
much memory as running it, and little for a model of more than 6 GiB. Needs `pip install 'compass-edge[export]'`.
"""
_OF_RECIPE = ("kind", "dialect", "vision", "embedding", "decoder", "block", "positions")
_EXAMPLES = f"""\
Precisions: {", ".join(PRECISIONS)}
  int8        a scale a column, activations quantized as they come: made for CPUs
  int4        a scale a block of --block weights: the smallest
  fp32        as exact as the checkpoint, to compare with

Examples:
  compass-edge models export Qwen3-VL-4B-Instruct                          into the store, as Qwen3-VL-4B-Instruct
  compass-edge models export Robometer-4B --precision int4 --name prm      its matrices in four bits
  compass-edge models export Qwen3.5-9B --dialect standard --out for-trt   plain ONNX for TensorRT, in a folder of its own

Stopped with Ctrl-C, what is finished stays in FOLDER{PARTIAL} beside the new model's folder, the store is as it was, and the same
command goes on from there. To give it up, delete that folder.
"""


def run(arguments: argparse.Namespace) -> int:
    chosen = {name: getattr(arguments, name) for name in _OF_RECIPE}
    recipe = Recipe(**{name: value for name, value in chosen.items() if value is not None})
    checkpoint = Path(arguments.checkpoint)
    name = check_name(arguments.name or (Path(arguments.out).name if arguments.out else _name_of(checkpoint)))
    out = Path(arguments.out) if arguments.out else models_folder() / name
    _check_free(out, arguments.force)
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise EnvironmentFault(
            "Export needs the package onnx: `pip install 'compass-edge[export]'`. Running a model does not need it."
        ) from error
    manifest = _export(checkpoint, out, recipe, name)
    if arguments.json:
        print(
            json.dumps(
                {"name": name, "path": str(out), "bytes": manifest.bytes, "manifest": asdict(manifest)}, indent=1
            )
        )
    else:
        _show(manifest, out, in_store=arguments.out is None)
    return 0


def _name_of(checkpoint: Path) -> str:
    """The folder's name; in a hub's cache that is a commit, and the model's name stands two folders above."""
    folder = checkpoint.resolve()
    if folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--"):
        return folder.parents[1].name.rpartition("--")[2]
    return folder.name


def _check_free(out: Path, force: bool) -> None:
    if not out.exists() and not out.is_symlink():
        return
    if not (out / MANIFEST).exists():
        raise UsageError(
            f"'{out}' is there and is no exported model, so it is not touched. Name another folder with --out."
        )
    if not force:
        raise UsageError(f"'{out}' is there already. --force replaces it, --name gives the new one another name.")
    if out.is_symlink():
        raise UsageError(
            f"'{out}' is a link, and only a folder is replaced. Remove it first, or name the folder with --out."
        )
    if _aside(out).exists():
        raise UsageError(
            f"'{_aside(out)}' is in the way: an earlier run has left it. Look into it, remove it, try again."
        )
    try:
        read_manifest(out)
    except IntegrityError as error:
        raise IntegrityError(
            f"--force deletes only what a manifest lists, and this one cannot be trusted: {error} Delete '{out}' yourself first."
        ) from error


def _aside(out: Path) -> Path:
    """Where the old model is while the new one takes its place."""
    return out.with_name(f".{out.name}.old")


def _export(checkpoint: Path, out: Path, recipe: Recipe, name: str) -> Manifest:
    from compass_edge.export.model import export_model

    replaced = out.exists()
    target = out.with_name(f".{out.name}.new") if replaced else out  # the old one serves until the new one is whole
    if replaced and target.exists():  # finished by a run that was stopped before it could put it in place
        remove(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with ByteBars() as bars:
            manifest = export_model(
                checkpoint, target, recipe, name=name,
                on_progress=lambda part, done, total: bars.update(f"exporting {part}", done, total),
            )  # fmt: skip
    except KeyboardInterrupt:
        partial = target.with_name(target.name + PARTIAL)
        if partial.exists():
            print(f"\nWhat is finished is in '{partial}': the same command goes on from there.", file=sys.stderr)
        raise
    except OSError as error:
        raise CompassError(
            f"The model could not be written to '{target}': {error.strerror or error}. Once that is cured, the same command goes "
            "on with what is finished."
        ) from error
    if replaced:
        _replace(out, target)
    return manifest


def _replace(out: Path, new: Path) -> None:
    old = _aside(out)
    out.rename(old)
    new.rename(out)
    if left := remove(old):
        print(
            f"Kept what was in '{out}' and did not belong to the model: {', '.join(map(str, left))}.", file=sys.stderr
        )


def _show(manifest: Manifest, out: Path, *, in_store: bool) -> None:
    print(
        f"{manifest.name}: {manifest.kind}, {manifest.family}, dialect {manifest.dialect}, {byte_size(manifest.bytes)}"
    )
    for part, precision in manifest.precision.items():
        print(f"  {part:<12} {precision}")
    print(f"in '{out}'")
    print(f"Next: compass-edge models verify {manifest.name if in_store else out}")


def register(actions: Any) -> None:
    parser = actions.add_parser(
        "export",
        help="make a model from a checkpoint",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = Recipe()
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="the folder with config.json and safetensors")
    parser.add_argument("--name", help="what the model is called from now on (the checkpoint's folder)")
    parser.add_argument("--out", metavar="FOLDER", help="the model's own folder, if not in the store (STORE/NAME)")
    parser.add_argument("--kind", choices=KINDS, help=f"what it is made into ({usual.kind}: as the checkpoint is)")
    parser.add_argument(
        "--dialect", choices=DIALECTS, help=f"operators of ONNX Runtime, or plain ONNX for TensorRT ({usual.dialect})"
    )
    parser.add_argument(
        "--precision",
        "--decoder",
        dest="decoder",
        choices=PRECISIONS,
        metavar="P",
        help=f"of the decoder, which is most of the model ({usual.decoder})",
    )
    parser.add_argument(
        "--vision", choices=PRECISIONS, metavar="P", help=f"precision of the vision tower ({usual.vision})"
    )
    parser.add_argument(
        "--embedding",
        choices=EMBEDDINGS,
        metavar="P",
        help=f"precision of the token table: {', '.join(EMBEDDINGS)} ({usual.embedding})",
    )
    parser.add_argument(
        "--block", type=at_least(1), metavar="N", help=f"weights that share a scale, 16 to 128 ({usual.block})"
    )
    parser.add_argument(
        "--positions", type=at_least(1), metavar="N", help=f"tokens of the longest sequence ({usual.positions})"
    )
    parser.add_argument("--force", action="store_true", help="replace a model that is there; it serves until then")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)
