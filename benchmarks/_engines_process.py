"""A contender seen from the race: its process, asked over a pipe. Only one works at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """Who takes part: its script, the families it knows, the packages it needs."""

    name: str
    script: str
    precision: str | None
    families: tuple[str, ...]
    packages: tuple[str, ...]

    def missing(self) -> list[str]:
        return [package for package in self.packages if find_spec(package) is None]


BOTH = ("qwen3-vl", "qwen3.5")
# llama.cpp and OpenVINO take part with the family whose text model they can be given as it is.
ENTRIES = (
    Entry("ours fp32", "ours", "fp32", BOTH, ()),
    Entry("ours int8", "ours", "int8", BOTH, ()),
    Entry("ours int4", "ours", "int4", BOTH, ()),
    Entry("transformers fp32", "transformers", None, BOTH, ("torch", "transformers")),
    Entry("openvino int8", "openvino", "int8", ("qwen3-vl",), ("openvino", "nncf")),
    Entry("llama.cpp q8_0", "llama", None, ("qwen3-vl",), ("xllamacpp", "gguf")),
)


class Process:
    def __init__(self, entry: Entry, family: str, threads: int) -> None:
        command = [sys.executable, str(_FOLDER / f"_engines_{entry.script}.py"), family, str(threads)]
        command += [entry.precision] if entry.precision else []
        self.name = entry.name
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._hear()

    def ask(self, do: str, tokens: Sequence[int] = ()) -> dict[str, Any]:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"do": do, "tokens": list(tokens)}) + "\n")
        self._child.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise SystemExit(
                f"{self.name} ended with {self._child.wait()}: run {' '.join(self._child.args)} to see why."
            )  # type: ignore[arg-type]
        heard: dict[str, Any] = json.loads(line)
        return heard

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()
