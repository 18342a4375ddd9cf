"""`compass-edge models`: exported models, from their checkpoint to their removal."""

from __future__ import annotations

import argparse
import json
from typing import Any

from compass_edge.cli import models_build, models_edgellm, models_export, models_remove, models_verify
from compass_edge.cli.byte_size import byte_size
from compass_edge.engines.store import Installed, installed, models_folder, unfinished
from compass_edge.errors import UsageError

_ABOUT = """\
A model is a folder of ONNX graphs with a manifest, which has the sha256 of every file and a question with its answer. It is
checked before it is loaded. Models live in $COMPASS_EDGE_MODELS, else in $XDG_DATA_HOME/compass-edge/models, else in
~/.local/share/compass-edge/models; every command takes a model's name there or the path of its folder.
"""
_EXAMPLES = """\
Examples:
  compass-edge models export Qwen3-VL-4B-Instruct    a checkpoint's folder becomes a model in the store
  compass-edge models build prm --target sm_86       TensorRT engines of a reward model
  compass-edge models edgellm Qwen3.5-9B out --board thor   quantized for TensorRT Edge-LLM
  compass-edge models list                           what is there, and whether it looks sound
  compass-edge models verify --all                   every byte, and a test run of each
"""
_COLUMNS = ("name", "kind", "family", "dialect", "precision", "size", "engines", "source", "state")


_OF_MANIFEST = ("kind", "family", "dialect", "precision", "bytes", "source", "made_with", "engines")


def run_list(arguments: argparse.Namespace) -> int:
    models, partial = installed(), unfinished()
    if arguments.json:
        rows = [_fields(model) for model in models]
        print(
            json.dumps(
                {"store": str(models_folder()), "models": rows, "unfinished": [str(p) for p in partial]}, indent=1
            )
        )
        return 0
    if not models:
        print(f"There is no model in '{models_folder()}'. `compass-edge models export CHECKPOINT` makes one.")
    else:
        _print_table(models)
    for path in partial:
        print(f"unfinished: '{path}'. The same export goes on from it; delete the folder to give it up.")
    return 0


def _fields(model: Installed) -> dict[str, Any]:
    about: dict[str, Any] = dict.fromkeys(_OF_MANIFEST)
    if (manifest := model.manifest) is not None:
        about = {
            "kind": manifest.kind,
            "family": manifest.family,
            "dialect": manifest.dialect,
            "precision": dict(manifest.precision),
            "bytes": manifest.bytes,
            "source": dict(manifest.source),
            "made_with": manifest.made_with,
            "engines": models_build.engine_fields(manifest.engines),
        }
    return {"name": model.name, "path": str(model.path), **about, "sound": model.fault is None, "fault": model.fault}


def _print_table(models: list[Installed]) -> None:
    rows = [_COLUMNS, *(_row(model) for model in models)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for model in models:
        if model.fault is not None:
            print(f"damaged: {model.name}. {model.fault}")
    print("Sound by size alone; `compass-edge models verify --all` reads every byte.")


def _row(model: Installed) -> tuple[str, ...]:
    state = "sound" if model.fault is None else "damaged"
    if (manifest := model.manifest) is None:
        return (model.name, *["-"] * 7, state)
    precision = ", ".join(f"{part} {kept}" for part, kept in manifest.precision.items())
    size, source = byte_size(manifest.bytes + manifest.engine_bytes), manifest.source.get("name", "-")
    targets = {record.target for record in manifest.engines.values()}
    engines = ", ".join(sorted(targets, key=lambda target: int(target[3:]))) or "-"
    return (model.name, manifest.kind, manifest.family, manifest.dialect, precision, size, engines, source, state)


def _needs_action(_arguments: argparse.Namespace) -> int:
    raise UsageError(
        "Say what to do: `compass-edge models list`, `export CHECKPOINT`, `build NAME`, `edgellm CHECKPOINT OUT`, `verify NAME` or "
        "`remove NAME`."
    )


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "models",
        help="exported models: make, build engines, list, verify, remove",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_needs_action)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    models_export.register(actions)
    models_build.register(actions)
    models_edgellm.register(actions)
    listed = actions.add_parser(
        "list", help="the models of the store", description="The models of the store, checked by size."
    )
    listed.add_argument("--json", action="store_true", help="print as JSON")
    listed.set_defaults(run=run_list)
    models_verify.register(actions)
    models_remove.register(actions)
