"""TensorRT Edge-LLM's command line: the one place that knows how its versions spell their commands.

0.11.0 installs a program for each command, tensorrt-edgellm-serve and so on; 0.11.1 has one, `trtedge serve`. Options are the same
in both, except that 0.11.1 writes those of quantize with hyphens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from compass_edge.boards.payload import table
from compass_edge.errors import UsageError

# What Edge-LLM's quantizer calls our number formats.
QUANTIZATIONS: dict[str, str] = {"int4-awq": "int4_awq", "nvfp4": "nvfp4", "fp8": "fp8"}
SPECULATIVE_TOKENS = 3  # of MTP, as NVIDIA measures it
LOOPBACK = "127.0.0.1"
_UNIFIED = (0, 11, 1)
_NEXT = (0, 12)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a server plans its memory for. A request beyond it is refused by the server, with a sentence."""

    prompt: int = 2048
    context: int = 4096
    image_tokens: int | None = None  # of all pictures of a prompt; None: as Edge-LLM has it
    snapshots: int = 0  # bytes of recurrent states that reuse may keep; models without such states need none


@dataclass(frozen=True, slots=True)
class CommandLine:
    version: str = field(default_factory=lambda: table().version)

    def __post_init__(self) -> None:
        found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", self.version)
        if found is None or not (0, 11) <= self._numbers < _NEXT:
            raise UsageError(
                f"The commands of TensorRT Edge-LLM are known for versions 0.11.x, and '{self.version}' came. Install "
                f"`{table().package}=={table().version}`."
            )

    @property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", self.version)[:3])

    @property
    def unified(self) -> bool:
        return self._numbers >= _UNIFIED

    def quantize(self, checkpoint: str, out: str, quantization: str, head: str | None = None) -> list[str]:
        """As a person would type it. It calibrates on data sets of a hub; `compass-edge models edgellm` does on frames."""
        words = [*self._program("quantize"), "llm", self._option("model_dir"), checkpoint]
        words += [self._option("output_dir"), out, "--quantization", quantization]
        return [*words, self._option("lm_head_quantization"), head] if head else words

    def export(self, checkpoint: str, out: str, *, mtp: bool = False, externalize: Sequence[str] = ()) -> list[str]:
        return [*self._program("export"), *export_arguments(checkpoint, out, mtp=mtp, externalize=externalize)]

    def build(self, checkpoint: str, engines: str, limits: ServerLimits, *, mtp: bool = False) -> list[str]:
        """Engines of a checkpoint, on the device that they are for. `serve` builds what it lacks by itself."""
        words = [*self._program("build"), "--model-dir", checkpoint, "--engine-dir", engines, *self._limits(limits)]
        return [*words, "--spec-type", "mtp"] if mtp else words

    def serve(
        self,
        checkpoint: str,
        model: str,
        port: int,
        limits: ServerLimits,
        *,
        mtp: bool = False,
        reuse: bool = False,
        cache: str = "",
    ) -> list[str]:
        """On loopback alone: Edge-LLM itself would listen on every interface, to anybody."""
        words = [*self._program("serve"), checkpoint, "--served-model-name", model, *self._limits(limits)]
        words += ["--port", str(port)]
        if mtp:
            speculation = {"method": "mtp", "num_speculative_tokens": SPECULATIVE_TOKENS}
            words += ["--speculative-config", json.dumps(speculation, separators=(",", ":"))]
        if reuse:
            words += ["--enable-context-reuse"]
            if limits.snapshots:
                words += ["--context-cache-recurrent-snapshot-pool-bytes", str(limits.snapshots)]
        if cache:
            words += ["--cache-dir", cache]
        return [*words, "--host", LOOPBACK]

    def _program(self, command: str) -> list[str]:
        return ["trtedge", command] if self.unified else [f"tensorrt-edgellm-{command}"]

    def _option(self, name: str) -> str:
        return f"--{name.replace('_', '-')}" if self.unified else f"--{name}"

    def _limits(self, limits: ServerLimits) -> list[str]:
        words = ["--max-input-len", str(limits.prompt), "--max-kv-cache-capacity", str(limits.context)]
        return words if limits.image_tokens is None else [*words, "--max-image-tokens", str(limits.image_tokens)]


def export_arguments(checkpoint: str, out: str, *, mtp: bool = False, externalize: Sequence[str] = ()) -> list[str]:
    """Of `export` in every version, behind the program's name."""
    words = [checkpoint, out]
    if mtp:
        words.append("--mtp")
    for kind in externalize:
        words += ["--externalize-weights", kind]
    return words
