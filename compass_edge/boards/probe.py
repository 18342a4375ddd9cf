"""The probe: reads what machine this is. Whatever is missing or garbled becomes a sentence in `troubles`, never an exception."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compass_edge.boards.command import Runner, run_command
from compass_edge.boards.jetson import clocks, parse_release, power_mode
from compass_edge.boards.libraries import newest, sonames
from compass_edge.boards.machine import Gpu, Machine
from compass_edge.boards.nvidia_smi import cards

PACKAGES = ("tensorrt", "tensorrt-rtx-cu13-libs", "tensorrt-edgellm", "onnxruntime", "onnxruntime-gpu", "vllm")
_MODELS = ("proc/device-tree/model", "sys/class/dmi/id/product_name")
_LIMIT = 1 << 16


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _glibc() -> tuple[int, int] | None:
    name, told = platform.libc_ver()
    numbers = told.split(".")
    return (int(numbers[0]), int(numbers[1])) if name == "glibc" and len(numbers) > 1 else None


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a machine is read from; a test plays another one."""

    root: Path = Path("/")
    run: Runner = run_command
    arch: str = field(default_factory=platform.machine)
    python_abi: str = f"cp{sys.version_info.major}{sys.version_info.minor}"
    glibc: tuple[int, int] | None = field(default_factory=_glibc)
    package: Callable[[str], str] = _installed  # its version; empty if it is not installed


def probe(sources: Sources | None = None) -> Machine:
    sources = sources or Sources()
    root, troubles = sources.root, list[str]()
    release = _text(root / "etc/nv_tegra_release", troubles)
    l4t = parse_release(release)
    if release and not l4t:
        troubles.append(
            f"/etc/nv_tegra_release was to begin like '# R39 (release), REVISION: 2.0', and has {release[:60]!r}."
        )
    model = next((text for path in _MODELS if (text := _text(root / path, troubles))), "")
    found, trouble = cards(sources.run)
    troubles += [trouble] if trouble else []
    memory, free = _memory(root, troubles)
    system = _os_release(_text(root / "etc/os-release", troubles))
    mode = speed = ""
    if l4t or "Jetson" in model:
        mode, trouble = power_mode(sources.run)
        speed, more = clocks(root, sources.run)
        troubles += [text for text in (trouble, more) if text]
    return Machine(
        arch=sources.arch,
        python_abi=sources.python_abi,
        glibc=sources.glibc,
        model=model,
        l4t=l4t,
        os_id=system.get("ID", ""),
        os_version=system.get("VERSION_ID", ""),
        gpu=_first(found, model),
        gpus=len(found),
        memory=memory,
        free=free,
        power_mode=mode,
        clocks=speed,
        cudart=sonames(root, "libcudart"),
        nvinfer=sonames(root, "libnvinfer"),
        tensorrt=newest(root, "libnvinfer"),
        packages={name: told for name in PACKAGES if (told := sources.package(name))},
        troubles=tuple(troubles),
    )


def _first(found: list[Gpu], model: str) -> Gpu | None:
    """A Jetson's GPU is known by its board: nvidia-smi came to Orin late, and does not tell everything there."""
    for mark, sm in (("Orin", 87), ("Thor", 110)):
        if mark in model and "Jetson" in model:
            told = found[0] if found else Gpu(mark)
            return Gpu(told.name, told.sm or sm, None, None, told.driver)
    return found[0] if found else None


def _text(path: Path, troubles: list[str]) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT).decode("utf-8", "replace").strip("\0 \n\t")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        troubles.append(f"'{path}' cannot be read: {error.strerror or error}.")
        return ""


def _memory(root: Path, troubles: list[str]) -> tuple[int | None, int | None]:
    text = _text(root / "proc/meminfo", troubles)
    values = dict[str, int]()
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdigit():
            values[name] = int(number[0]) * 1024
    total, free = values.get("MemTotal"), values.get("MemAvailable")
    if total is None or free is None:
        troubles.append("/proc/meminfo was to tell MemTotal and MemAvailable, and does not.")
    return total, free


def _os_release(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
