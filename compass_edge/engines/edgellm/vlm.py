"""A vision-language model on a TensorRT Edge-LLM server of our own.

    with open_served(part, Path("Qwen3.5-9B-orin/quantized")) as model:  # a VisionLanguageModel, for Orienter or Verifier
        ...

The server enforces the JSON schema and reuses what prompts share; replies are checked here all the same. It has never been run on
a GPU by us: the supervision is tested on a stand-in for the server, the requests on servers of others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from compass_edge.boards.machine import Machine
from compass_edge.boards.part import Part
from compass_edge.engines.edgellm.launch import Launch, launch_of
from compass_edge.engines.edgellm.readiness import require_payload
from compass_edge.engines.edgellm.server import EdgeLlmServer, Supervision
from compass_edge.engines.openai.model import OpenAiModel
from compass_edge.errors import CompassError
from compass_edge.models import Cancelled, OnText, Question

_LOOK_S = 0.1


def open_served(part: Part, checkpoint: Path, machine: Machine | None = None) -> EdgeLlmVlm:
    """A part of a board's arrangement, served from a checkpoint that `compass-edge models edgellm` has made."""
    require_payload(machine)
    return EdgeLlmVlm(EdgeLlmServer(launch_of(part, checkpoint)))


def open_launched(launch: Launch, machine: Machine | None = None, supervision: Supervision | None = None) -> EdgeLlmVlm:
    require_payload(machine)
    return EdgeLlmVlm(EdgeLlmServer(launch, supervision))


class EdgeLlmVlm:
    """Starts its server when it is made, waits for it when it is first asked, and stops it when it is closed."""

    def __init__(self, server: EdgeLlmServer) -> None:
        self.server = server
        self.client = OpenAiModel(server.launch.endpoint)
        server.start()

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def max_batch(self) -> int:
        return 1

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        if not self._ready(cancelled):
            return [""] * len(questions)
        try:
            return self.client.ask(questions, on_text, cancelled)
        except CompassError as error:
            if self.server.state == "ready" and self.server.pid is not None:
                raise
            raise CompassError(f"{error} {self.server.sentence()}") from error

    def close(self) -> None:
        self.server.stop()

    def __enter__(self) -> EdgeLlmVlm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, cancelled: Cancelled) -> bool:
        """False once nobody waits. A restart may take as long as a call, a first start as long as it takes to build."""
        first = self.server.starts <= 1
        until = None if first else time.monotonic() + self.server.launch.deadline_s
        while self.server.state not in ("ready", "failed", "stopped", "new"):
            if cancelled():
                return False
            if until is not None and time.monotonic() > until:
                break
            time.sleep(_LOOK_S)
        if self.server.state != "ready":
            raise CompassError(self.server.sentence())
        return True
