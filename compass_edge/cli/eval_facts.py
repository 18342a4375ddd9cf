"""What is known about a run: enough for a reader to judge its numbers, and to make them again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compass_edge import __version__
from compass_edge.data.episode import Episode
from compass_edge.eval.negatives import NEGATIVES
from compass_edge.loop.events import Role
from compass_edge.loop.settings import Settings

_PACKAGES = ("numpy", "onnxruntime", "av", "matplotlib", "mujoco")


def facts(
    command: Sequence[str],
    episodes: Sequence[Episode],
    models: Mapping[Role, str],
    settings: Settings | None,  # None: the defaults, with ticks by time
    executor: str,
) -> dict[str, dict[str, str]]:
    negatives = sum(episode.kind in NEGATIVES for episode in episodes)
    plain = asdict(settings or Settings())
    if settings is None:
        plain["every"] = "a third of a second"
    return {
        "Command": {"command line": shlex.join(["compass-edge", *command])},
        "Data": {
            "episodes": f"{len(episodes) - negatives} and {negatives} negatives" if negatives else str(len(episodes)),
            "tasks": str(len({episode.task for episode in episodes})),
            "steps": str(sum(episode.size for episode in episodes)),
            "frames": str(sum(episode.frames for episode in episodes)),
            "hash": data_hash(episodes),
        },
        "Models": {str(role): name for role, name in models.items()},
        "Settings": {
            **{key: _told(value) for key, value in plain.items()},
            "executor": executor,
        },
        "Versions": {"compass-edge": __version__, "Python": platform.python_version(), **_versions()},
        "Machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "processor": _processor(),
            "cores": str(os.cpu_count()),
        },
    }


def _told(value: object) -> str:
    """A rule's numbers beside their names."""
    return ", ".join(f"{key} {part}" for key, part in value.items()) if isinstance(value, dict) else str(value)


def data_hash(episodes: Sequence[Episode]) -> str:
    """Of what the films show and what the annotation says; the order of the episodes does not matter."""
    rows = sorted(
        json.dumps(
            [one.id, one.task, one.kind, one.instruction, one.film.key, one.frames,
             [asdict(step) for step in one.steps or ()]],
            sort_keys=True, default=repr,
        )
        for one in episodes
    )  # fmt: skip
    return hashlib.blake2b("\n".join(rows).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    board = fields.get("model", "")  # ARM boards say what they are; x86 says a number
    return fields.get("model name") or ("" if board.isdecimal() else board) or platform.processor() or "unknown"
