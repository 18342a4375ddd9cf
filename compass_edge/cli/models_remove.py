"""`compass-edge models remove`: deletes models, and nothing else that may lie in their folders."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from compass_edge.cli.byte_size import byte_size
from compass_edge.engines.manifest import read_manifest
from compass_edge.engines.store import find, remove
from compass_edge.errors import IntegrityError, UsageError


def run(arguments: argparse.Namespace) -> int:
    folders = {name: find(name) for name in arguments.names}
    sizes = {}
    for name, folder in folders.items():  # all of them are known before the first one goes
        try:
            manifest = read_manifest(folder)
            sizes[name] = manifest.bytes + manifest.engine_bytes
        except IntegrityError as error:
            raise IntegrityError(
                f"Only what a manifest lists is deleted, and this one cannot be trusted: {error} Or delete the folder yourself."
            ) from error
    if not arguments.yes and not _agreed([f"{name} ({byte_size(sizes[name])})" for name in folders]):
        print("Nothing was removed.", file=sys.stderr)
        return 1
    rows = []
    for name, folder in folders.items():
        left = [str(path) for path in remove(folder)]
        rows.append({"name": name, "path": str(folder), "bytes": sizes[name], "left": left})
        if not arguments.json:
            kept = f" It was not alone there; left are: {', '.join(left)}." if left else ""
            print(f"Removed {name}, {byte_size(sizes[name])}, from '{folder}'.{kept}")
    if arguments.json:
        print(json.dumps({"removed": rows}, indent=1))
    return 0


def _agreed(what: list[str]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on. Say --yes to remove without being asked.")
    print(f"Remove {', '.join(what)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def register(actions: Any) -> None:
    parser = actions.add_parser(
        "remove",
        help="delete models",
        description="Deletes the files that a model's manifest lists and the manifest, then the folder if it is empty. Other files in "
        "it stay and are named. A folder without a manifest is not touched. It asks first; --yes answers.",
        epilog="Example:\n  compass-edge models remove Qwen3-VL-4B-Instruct",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="a model of the store, or the folder of one")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)
