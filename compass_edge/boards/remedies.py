"""Remedies: the commands that make a part of an arrangement ready. They are printed, never run."""

from __future__ import annotations

import shlex

from compass_edge.boards.board import Board
from compass_edge.boards.budget import Budget
from compass_edge.boards.part import Part
from compass_edge.engines.edgellm.command_line import CommandLine, ServerLimits

PORTS = {"orienter": 8001, "verifier": 8002}


def port_of(part: Part) -> int:
    return PORTS[part.roles[0]]


def folder_of(part: Part) -> str:
    """Of the checkpoint, as the hub's own tool names it."""
    return part.shape.checkpoint.rpartition("/")[2]


def export_command(part: Part) -> str:
    """What makes a model of the store of a checkpoint."""
    words = ["compass-edge", "models", "export", folder_of(part), "--precision", part.formats.decoder]
    if part.formats.vision != "fp32":
        words += ["--vision", part.formats.vision]
    if part.formats.embedding != "fp16":
        words += ["--embedding", part.formats.embedding]
    if part.engine == "tensorrt":
        words += ["--dialect", "standard"]
    return shlex.join([*words, "--name", part.stored])


def build_command(board: Board, part: Part) -> str:
    """Engines of an exported model, for each chip that the board may have."""
    targets = [word for sm in board.sms for word in ("--target", f"sm_{sm}")]
    return shlex.join(["compass-edge", "models", "build", part.stored, *targets])


def edgellm_commands(board: Board, part: Part) -> tuple[str, ...]:
    """Quantized once, on a computer that has the memory for it; served on the board."""
    quantize = [
        "compass-edge", "models", "edgellm", folder_of(part), part.stored, "--board", board.name, "--only", "quantize",
    ]  # fmt: skip
    limits = ServerLimits(part.limits.prompt, part.limits.context)
    serve = CommandLine().serve(f"{part.stored}/quantized", part.model, port_of(part), limits, mtp=part.mtp)
    return shlex.join(quantize), shlex.join(serve)


def server_command(board: Board, budget: Budget, part: Part) -> str:
    """vLLM takes nine tenths of a card unless it is told otherwise, and then nothing is left for the progress model."""
    share = budget.need_of([part]) / board.memory
    words = [
        "vllm", "serve", part.stored, "--served-model-name", part.model, "--max-model-len", str(part.limits.context),
        "--gpu-memory-utilization", f"{share:.2f}", "--port", str(port_of(part)),
    ]  # fmt: skip
    return shlex.join(words)


def commands_for(board: Board, budget: Budget, part: Part, *, edgellm: bool) -> tuple[str, ...]:
    """`edgellm`: whether a payload of it fits the machine; a board of a fixed chip has one by definition."""
    if part.engine == "onnx":
        return (export_command(part),)
    if part.engine == "tensorrt":
        return export_command(part), build_command(board, part)
    if part.engine == "edgellm" or edgellm:
        return edgellm_commands(board, part)
    return (server_command(board, budget, part),)
