"""CUDA's and TensorRT's libraries, by their files: nothing is loaded."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDERS = (
    "usr/lib/*-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/local/cuda*/lib64",
    "usr/local/cuda*/targets/*/lib",
    "usr/local/tensorrt*/lib",
    "opt/tensorrt*/lib",
)
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


def _versions(root: Path, stem: str) -> list[tuple[int, ...]]:
    found = set[tuple[int, ...]]()
    for folder in _FOLDERS:
        for path in root.glob(f"{folder}/{stem}.so.*"):
            match = _VERSION.search(path.name)
            if match is not None:
                found.add(tuple(int(number) for number in match.group(1).split(".")))
    return sorted(found)


def sonames(root: Path, stem: str) -> tuple[str, ...]:
    """libnvinfer.so.10, once, for libnvinfer.so.10 and libnvinfer.so.10.16.0."""
    return tuple(f"{stem}.so.{major}" for major in sorted({version[0] for version in _versions(root, stem)}))


def newest(root: Path, stem: str) -> str:
    """The version that a file's name gives away; empty without one."""
    versions = [version for version in _versions(root, stem) if len(version) > 1]
    return ".".join(map(str, versions[-1])) if versions else ""
