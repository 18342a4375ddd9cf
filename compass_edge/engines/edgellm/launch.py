"""How a model is served by TensorRT Edge-LLM on this computer."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path

from compass_edge.boards.part import Part
from compass_edge.boards.remedies import port_of
from compass_edge.engines.edgellm.command_line import LOOPBACK, CommandLine, ServerLimits
from compass_edge.engines.openai.endpoint import Endpoint
from compass_edge.errors import EnvironmentFault, UsageError

SNAPSHOTS = 128 << 20  # of a hybrid model: without room for its recurrent states nothing of a context can be reused


@dataclass(frozen=True, slots=True)
class Launch:
    """`checkpoint` is what `compass-edge models edgellm` has quantized: OUT/quantized. Engines are built at the first start."""

    checkpoint: Path
    model: str
    port: int = 8001
    limits: ServerLimits = field(default_factory=lambda: ServerLimits(snapshots=SNAPSHOTS))
    mtp: bool = False
    reuse: bool = True
    cache: str = ""  # where engines are kept; empty: where Edge-LLM keeps them
    deadline_s: float = 120.0  # of a call
    programs: Path | None = (
        None  # the folder of Edge-LLM's programs, where they are not on the path: its pins differ from ours
    )

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise UsageError(f"A server's port must be from 1 to 65535, and {self.port} came.")
        if not 0 < self.limits.prompt <= self.limits.context:
            raise UsageError(
                f"A prompt must have a token and fit its context, and {self.limits.prompt} of {self.limits.context} came."
            )

    @property
    def endpoint(self) -> Endpoint:
        """One request at a time: with two clients its state is known to be corrupted."""
        return Endpoint(f"http://{LOOPBACK}:{self.port}/v1", self.model, concurrency=1, deadline_s=self.deadline_s)

    def words(self, commands: CommandLine) -> list[str]:
        words = commands.serve(
            str(self.checkpoint), self.model, self.port, self.limits, mtp=self.mtp, reuse=self.reuse, cache=self.cache
        )
        return words if self.programs is None else [str(self.programs / words[0]), *words[1:]]

    def check(self) -> None:
        """What would only be found by a server that has started."""
        if not (self.checkpoint / "config.json").is_file():
            raise UsageError(
                f"'{self.checkpoint}' must be the folder of a quantized checkpoint, and has no config.json. Make one with "
                "`compass-edge models edgellm CHECKPOINT OUT --board NAME` and name OUT/quantized."
            )
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, self.port))
            except OSError as error:
                raise EnvironmentFault(
                    f"Port {self.port} must be free for TensorRT Edge-LLM's server, and it is not: {error.strerror or error}. Stop "
                    "what listens there, choose another port, or ask that server over compass_edge.engines.openai."
                ) from error


def launch_of(part: Part, checkpoint: Path) -> Launch:
    """As the arrangement of a board has it."""
    hybrid = part.model.startswith("Qwen3.5")
    limits = ServerLimits(part.limits.prompt, part.limits.context, snapshots=SNAPSHOTS if hybrid else 0)
    return Launch(checkpoint, part.model, port_of(part), limits, part.mtp)
