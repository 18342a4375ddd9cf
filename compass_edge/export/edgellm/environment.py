"""TensorRT Edge-LLM's own virtual environment: made here, with exact versions, and checked before it is used.

It is kept apart because Edge-LLM pins other versions than ours of everything that both need, and because it installs a package that
is literally named `experimental`. It stands in $COMPASS_EDGE_EDGELLM, else under $XDG_DATA_HOME. Only one whose record names what
is asked for here counts as finished; another run goes on with an unfinished one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.boards.payload import table
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError
from compass_edge.export.edgellm.process import Cancelled, run_logged

VARIABLE = "COMPASS_EDGE_EDGELLM"
# Alone and first: resolved together with the others, pip takes the torch that comes with gigabytes of CUDA.
TORCH = "torch==2.13.0"
PINS = (
    TORCH,
    "transformers==5.14.1",
    "onnx==1.19.0",
    "onnxscript==0.7.1",
    "onnx-graphsurgeon==0.6.1",
    "safetensors==0.8.0",
    "numpy==2.2.6",
    "nvidia-modelopt==0.45.0",
    "tensorrt-edgellm==0.11.0",
    # What modelopt and the driver import, and neither of them asks for.
    "requests==2.34.2",
    "pillow==13.0.0",
)
# Its wheels are for CUDA: beside a torch for CPUs, transformers cannot even be imported.
FORBIDDEN = ("torchvision",)
STEPS = 4
RECORD = "compass-edge.json"
_LOG = "install.log"
_ROOM = 4 << 30
_PYTHONS = ((3, 10), (3, 12))
_PROBE = """\
import importlib.metadata as known, json, sys
def version(name):
    try:
        return known.version(name)
    except known.PackageNotFoundError:
        return None
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""

OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Environment:
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name


def environment_folder() -> Path:
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser().absolute()
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "compass-edge" / f"edgellm-{table().version}"


def open_environment(folder: Path | None = None) -> Environment:
    """One that is finished, with every package looked at."""
    environment = Environment(folder or environment_folder())
    if not is_finished(environment):
        raise EnvironmentFault(
            f"TensorRT Edge-LLM's own environment must be in '{environment.folder}', and is not there, or not finished. "
            "`compass-edge models edgellm` makes it."
        )
    check_packages(environment)
    return environment


def is_finished(environment: Environment) -> bool:
    try:
        record = json.loads((environment.folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("pins") == list(PINS) and environment.python.exists()


def make_environment(
    folder: Path | None = None,
    *,
    interpreter: str = sys.executable,
    on_step: OnStep = lambda *_: None,
    cancelled: Cancelled = lambda: False,
) -> Environment:
    """The finished one if it is there. What an earlier run has installed is not installed again."""
    environment = Environment(folder or environment_folder())
    if is_finished(environment):
        check_packages(environment)
        return environment
    check_interpreter(interpreter)
    _check_place(environment.folder)
    log = environment.folder / _LOG
    for done, (said, words) in enumerate(install_commands(environment, interpreter)):
        on_step(said, done, STEPS)
        if done == 0 and _works(environment.python):
            continue
        run_logged(words, log, f"TensorRT Edge-LLM's environment: {said}", cancelled=cancelled)
    on_step("checking what was installed", STEPS - 1, STEPS)
    versions = check_packages(environment)
    record = {"format": "compass-edge-edgellm-environment/1", "pins": list(PINS), "versions": versions}
    partial = environment.folder / f"{RECORD}.partial"
    partial.write_text(json.dumps(record, indent=1), "utf-8")
    partial.replace(environment.folder / RECORD)
    on_step("checking what was installed", STEPS, STEPS)
    return environment


def install_commands(environment: Environment, interpreter: str = sys.executable) -> list[tuple[str, list[str]]]:
    """In this order. `--clear` throws away a half-made environment whose Python does not start."""
    pip = [str(environment.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return [
        ("making it", [interpreter, "-m", "venv", "--clear", str(environment.folder)]),
        ("installing torch", [*pip, TORCH]),
        ("installing Edge-LLM and modelopt", [*pip, *PINS]),
    ]


def check_packages(environment: Environment) -> dict[str, str]:
    """Every version against its pin, in the environment itself; nothing is imported."""
    wanted = dict(pin.split("==") for pin in PINS)
    try:
        done = subprocess.run(
            [str(environment.python), "-I", "-c", _PROBE, *wanted, *FORBIDDEN],
            capture_output=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentFault(
            f"The Python of TensorRT Edge-LLM's environment in '{environment.folder}' must tell what is installed, and does not: "
            f"{error}. Delete the folder; the same command makes it again."
        ) from error
    for name in FORBIDDEN:
        if found[name] is not None:
            raise IntegrityError(
                f"'{environment.folder}' must not have {name}, whose wheels break transformers there, and {found[name]} is "
                f"installed. Remove it: `{environment.python} -m pip uninstall {name}`."
            )
    for name, version in wanted.items():
        came = found[name]
        # A build for CPUs says so behind a plus: 2.13.0+cpu.
        if came is None or str(came).partition("+")[0] != version:
            raise IntegrityError(
                f"'{environment.folder}' must have {name} {version}, and {came or 'none'} is installed. Delete the folder; the "
                "same command makes it again."
            )
    return {name: str(found[name]) for name in wanted}


def check_interpreter(interpreter: str) -> None:
    words = [interpreter, "-I", "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(words, capture_output=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
        came = tuple(int(number) for number in done.stdout.split())
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentFault(f"'{interpreter}' must be a Python, and does not start as one: {error}.") from error
    (low, high) = _PYTHONS
    if not low <= came <= high:
        raise EnvironmentFault(
            f"TensorRT Edge-LLM {table().version} has wheels for Python {low[0]}.{low[1]} to {high[0]}.{high[1]}, and "
            f"'{interpreter}' is {'.'.join(map(str, came))}. Name another with --python."
        )


def _check_place(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder.parent).free
    except OSError as error:
        raise CompassError(f"'{folder.parent}' cannot be written to: {error.strerror or error}.") from error
    if free < _ROOM:
        raise EnvironmentFault(
            f"TensorRT Edge-LLM's environment needs about {_ROOM >> 30} GiB in '{folder.parent}', and {free / (1 << 30):.1f} GiB "
            f"are free. Free some, or set {VARIABLE} to a folder that has them."
        )
    theirs = folder.is_dir() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").exists()
    if theirs and {path.name for path in folder.iterdir()} != {_LOG}:
        raise EnvironmentFault(
            f"'{folder}' must be empty or an environment of this kind, and has other files in it. Set {VARIABLE} to another "
            "folder."
        )


def _works(python: Path) -> bool:
    try:
        done = subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
