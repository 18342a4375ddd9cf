"""`compass-edge doctor`: what is installed, what is missing, and the cure."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from compass_edge import __version__
from compass_edge.boards.probe import probe
from compass_edge.cli.check import Check, Verdict
from compass_edge.cli.doctor_board import board_checks
from compass_edge.errors import EnvironmentFault, UsageError
from compass_edge.frames.native import native

_REQUIRED = ("numpy", "onnxruntime", "tokenizers", "llguidance", "jinja2", "jsonschema", "av")
_OPTIONAL = {
    "onnx": ("export", "makes models of checkpoints"),
    "yaml": ("export", "makes models of checkpoints"),
    "torch": ("parity", "proves kernels and engines against the reference"),
    "transformers": ("parity", "proves kernels and engines against the reference"),
    "pytest_benchmark": ("bench", "runs the micro-benchmarks"),
    "mujoco": ("sim", "the simulator"),
    "matplotlib": ("eval", "draws the report of an evaluation"),
    "h5py": ("data", "reads RMBench, RoboDojo and LIBERO-Mem"),
    "pyarrow": ("data", "reads LeRobot data sets"),
    "PIL": ("data", "draws contact sheets"),
    "cv2": ("bench", "a rival in the benchmarks"),
    "decord": ("bench", "a rival in the benchmarks"),
    "openvino": ("bench-engines", "a rival in the benchmarks"),
}
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "yaml": "pyyaml",
    "cv2": "opencv-python-headless",
    "pytest_benchmark": "pytest-benchmark",
}
_SYMBOLS: dict[Verdict, str] = {"ok": "ok", "missing": "MISSING", "optional": "optional", "info": "-"}


def _import(module: str) -> str | None:
    """Why the module cannot be imported; None when it can. A package that is there can still be broken."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # onnxruntime prints a traceback of its own
            importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _version(module: str) -> str:
    try:
        return version(_DISTRIBUTIONS.get(module, module))
    except PackageNotFoundError:
        return "unknown version"


def _core() -> Iterator[Check]:
    try:
        core = native()
        isa = core.isa()
    except EnvironmentFault as error:
        yield Check(
            "C++ core",
            "missing",
            str(error),
            "pip install .  (needs g++ and Python's headers: apt install g++ python3-dev)",
        )
        return
    except UsageError as error:
        yield Check("C++ core", "missing", str(error), "unset COMPASS_EDGE_ISA")
        return
    yield Check(
        "C++ core", "ok", f"compass-edge {__version__}, kernels on {isa} (of {', '.join(core.available_isas())})"
    )
    if core.ffmpeg_version is not None:
        yield Check("video decoding", "ok", f"C++ on FFmpeg {core.ffmpeg_version}, straight into the ring")
    elif _import("av") is None:
        yield Check(
            "video decoding",
            "ok",
            f"PyAV {_version('av')} (one copy a frame)",
            "for decoding in C++: apt install pkg-config libavformat-dev libavcodec-dev libavdevice-dev libswscale-dev, "
            "then pip install . again",
        )
    else:
        yield Check("video decoding", "missing", "neither FFmpeg in C++ nor PyAV", "pip install av")


def _packages() -> Iterator[Check]:
    for module in _REQUIRED:
        problem = _import(module)
        if problem is None:
            yield Check(module, "ok", _version(module))
        else:
            yield Check(module, "missing", problem, f"pip install --force-reinstall {module}")
    for module, (extra, purpose) in _OPTIONAL.items():
        # Only looked up: importing torch takes seconds and a doctor should not.
        if importlib.util.find_spec(module) is None:
            yield Check(module, "optional", f"not installed; {purpose}", f"pip install 'compass-edge[{extra}]'")
        else:
            yield Check(module, "ok", f"{_version(module)}; {purpose}")


def _providers() -> Iterator[Check]:
    """What ONNX Runtime can compute on. Two packages write the same files, and the last one that was installed wins."""
    if _import("onnxruntime") is not None:
        return
    import onnxruntime

    there = [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    gpu = _version("onnxruntime-gpu") != "unknown version"
    wins = "pip install --force-reinstall --no-deps onnxruntime-gpu"
    if gpu and "CUDA" not in there:
        yield Check(
            "ONNX Runtime on", "optional", f"{', '.join(there)}; onnxruntime has overwritten onnxruntime-gpu", wins
        )
    else:
        able = not gpu and probe().gpu is not None and platform.machine() == "x86_64"
        cure = f"for the GPU: pip install 'compass-edge[cuda]', then {wins}" if able else ""
        yield Check("ONNX Runtime on", "info", ", ".join(there), cure)


def _graphics() -> Iterator[Check]:
    """What the simulator draws with; asked only where there is a simulator."""
    if importlib.util.find_spec("mujoco") is None:
        return
    from compass_edge.sim.gl import choose_gl

    try:
        yield Check("graphics", "ok", f"{choose_gl()}; the simulator's pictures")
    except EnvironmentFault as error:
        yield Check(
            "graphics",
            "optional",
            "neither EGL nor OSMesa works; the simulator's pictures",
            str(error).partition(" here. ")[2],
        )


def _machine() -> Iterator[Check]:
    python_ok = sys.version_info >= (3, 10)
    yield Check(
        "Python",
        "ok" if python_ok else "missing",
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "" if python_ok else "Python 3.10 or later",
    )
    machine = probe()
    free, total = (
        f"{value / (1 << 30):.1f}" if value else "an unknown number" for value in (machine.free, machine.memory)
    )
    yield Check("machine", "info", f"{os.cpu_count()} cores, {free} of {total} GiB free")
    yield from board_checks(machine)
    cameras = sorted(str(path) for path in Path("/dev").glob("video*"))
    yield Check("cameras", "info", ", ".join(cameras) or "no /dev/video*")


def examine() -> list[Check]:
    """Everything doctor looks at, in the order it prints it."""
    return [*_machine(), *_core(), *_packages(), *_providers(), *_graphics()]


def _print_table(checks: list[Check]) -> None:
    widest = max(len(check.name) for check in checks)
    colours = {"ok": "32", "missing": "31;1", "optional": "33", "info": "2"} if sys.stdout.isatty() else {}
    for check in checks:
        symbol = f"{_SYMBOLS[check.verdict]:<8}"
        if check.verdict in colours:
            symbol = f"\x1b[{colours[check.verdict]}m{symbol}\x1b[0m"
        print(f"{symbol}  {check.name:<{widest}}  {check.detail}")
        if check.cure:
            print(f"{'':<8}  {'':<{widest}}  -> {check.cure}")


def run(arguments: argparse.Namespace) -> int:
    checks = examine()
    missing = [check.name for check in checks if check.verdict == "missing"]
    if arguments.json:
        print(json.dumps({"ok": not missing, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        _print_table(checks)
        print(f"\nThe main job cannot run: {', '.join(missing)}." if missing else "\nThe main job can run here.")
    return EnvironmentFault.exit_code if missing else 0


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="what is installed, what is missing, and the cure",
        description="Looks at everything compass-edge needs, names what is missing and how to get it. Exit code 3 when the "
        "main job cannot run.",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run)
