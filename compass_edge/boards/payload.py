"""TensorRT Edge-LLM's native payloads: its wheel carries several, and takes the one that matches the machine exactly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compass_edge.boards.machine import Machine

_TABLE = Path(__file__).with_name("payloads.json")


@dataclass(frozen=True, slots=True)
class Payload:
    variant: str  # its folder inside the wheel; empty where that is not known
    arch: str
    sm: int
    cudart: str
    nvinfer: str
    family: str
    marks: tuple[str, ...]  # releases or device models that it is for
    by: str  # where the mark is read: l4t, driveos, device-model, os-release
    evidence: str

    @property
    def title(self) -> str:
        return self.variant or f"{self.arch} {self.family} {self.marks[0]} sm_{self.sm} with {self.nvinfer}"


@dataclass(frozen=True, slots=True)
class Wheel:
    arch: str
    tag: str
    glibc: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Table:
    package: str
    version: str
    abis: tuple[str, ...]
    wheels: dict[str, Wheel]
    payloads: tuple[Payload, ...]
    evidence: dict[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """What a payload is chosen by."""

    python_abi: str
    arch: str
    sm: int | None
    family: str
    mark: str
    glibc: tuple[int, int] | None = None
    cudart: tuple[str, ...] = ()
    nvinfer: tuple[str, ...] = ()


@cache
def table() -> Table:
    document = json.loads(_TABLE.read_text("utf-8"))
    wheels = {
        arch: Wheel(arch, row["tag"], (row["glibc"][0], row["glibc"][1])) for arch, row in document["wheels"].items()
    }
    rows = tuple(Payload(**{**row, "marks": tuple(row["marks"])}) for row in document["payloads"])
    return Table(
        document["package"], document["version"], tuple(document["abis"]), wheels, rows, dict(document["evidence"])
    )


def target_of(machine: Machine) -> Target:
    family, mark = _platform(machine)
    return Target(
        machine.python_abi,
        machine.arch,
        machine.gpu.sm if machine.gpu else None,
        family,
        mark,
        machine.glibc,
        machine.cudart,
        machine.nvinfer,
    )


def _platform(machine: Machine) -> tuple[str, str]:
    named = f"{machine.model} {machine.gpu.name if machine.gpu else ''}"
    for family, marks in (("igx-thor", ("NVIDIA IGX Thor",)), ("dgx-spark", ("DGX Spark", "GB10"))):
        for mark in marks:
            if mark.lower() in named.lower():
                return family, mark
    if machine.jetson:
        return "jetson", machine.l4t_release
    return machine.os_id, machine.os_version
