"""Engines of a quantized checkpoint, built on the device that they are for, ahead of the first start of a server.

`tensorrt-edgellm-serve` builds what it lacks by itself, into a cache of its own. This is for whoever ships engines, or embeds Edge-LLM's
C++. It needs the GPU and NVIDIA's TensorRT: it has never been run by us beyond the point where it asks for them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from compass_edge.boards.machine import Machine
from compass_edge.engines.edgellm.command_line import CommandLine, ServerLimits
from compass_edge.engines.edgellm.readiness import require_payload
from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.export.edgellm.process import Cancelled, run_logged


def build_engines(
    checkpoint: Path,
    engines: Path,
    limits: ServerLimits,
    *,
    mtp: bool = False,
    programs: Path | None = None,
    commands: CommandLine | None = None,
    machine: Machine | None = None,
    cancelled: Cancelled = lambda: False,
) -> Path:
    """`engines` has its name once it is whole. `programs` is the folder of Edge-LLM's programs, if they are not on the path."""
    require_payload(machine)
    if not (checkpoint / "config.json").is_file():
        raise UsageError(
            f"'{checkpoint}' must be the folder of a quantized checkpoint, and has no config.json. Make one with "
            "`compass-edge models edgellm CHECKPOINT OUT --board NAME` and name OUT/quantized."
        )
    if engines.exists():
        raise UsageError(f"'{engines}' is there already. Choose another folder, or delete it to build them again.")
    partial = engines.with_name(f".{engines.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    words = (commands or CommandLine()).build(str(checkpoint), str(partial), limits, mtp=mtp)
    if programs is not None:
        words[0] = str(programs / words[0])
    try:
        run_logged(words, engines.with_name(f"{engines.name}.log"), "Edge-LLM's builder", cancelled=cancelled)
        if not any(partial.rglob("*.engine")):
            raise IntegrityError(f"Edge-LLM's builder was to write engines into '{partial}', and there is none.")
        partial.rename(engines)
    except OSError as error:
        raise CompassError(f"'{engines}' could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return engines
