"""Whether TensorRT Edge-LLM can run on this machine at all: asked of the payload planner before anything is started."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from compass_edge.boards.machine import Machine
from compass_edge.boards.payload import Payload, table, target_of
from compass_edge.boards.payload_plan import plan_payload
from compass_edge.boards.probe import probe
from compass_edge.engines.edgellm.command_line import CommandLine
from compass_edge.errors import EnvironmentFault


def require_payload(machine: Machine | None = None) -> Payload:
    """The payload of its wheel that fits, or the sentence about why none does and what to use instead."""
    plan = plan_payload(target_of(machine or probe()))
    if plan.payload is None:
        raise EnvironmentFault(f"TensorRT Edge-LLM cannot run here. {plan.why} {plan.instead}")
    return plan.payload


def installed_command_line() -> CommandLine:
    """Of the version beside us; without one, of the version that the table is of."""
    try:
        return CommandLine(version(table().package))
    except PackageNotFoundError:
        return CommandLine()
