"""What doctor says on a robot: board, system, GPU, power, memory, TensorRT, Edge-LLM, what fits and what to install."""

from __future__ import annotations

from collections.abc import Iterator

from compass_edge.boards.board import Board
from compass_edge.boards.fitting import alternative, gigabytes
from compass_edge.boards.machine import Machine
from compass_edge.boards.payload import target_of
from compass_edge.boards.payload_plan import plan_payload
from compass_edge.boards.recognition import board_of, free_for_models, precisions_of
from compass_edge.cli.check import Check

_GARBAGE = ("R38.4", "10.13")  # L4T and TensorRT of JetPack 7.1


def board_checks(machine: Machine) -> Iterator[Check]:
    board = board_of(machine)
    yield _board(machine, board)
    yield _gpu(machine)
    if machine.jetson:
        yield _jetpack(machine)
        yield _power(machine)
        yield Check("clocks", "info", machine.clocks or "not told")
    yield _tensorrt(machine)
    yield from _edgellm(machine)
    yield _fits(machine, board)
    for trouble in machine.troubles:
        yield Check("not told", "info", trouble)


def _board(machine: Machine, board: Board | None) -> Check:
    named = machine.model or f"a computer that does not say its model ({machine.arch})"
    if board is None:
        return Check(
            "board", "info", f"{named}; no preset is written for it", "compass-edge boards  lists those that are"
        )
    return Check("board", "info", f"{named}; its preset is {board.name} ({board.about})")


def _gpu(machine: Machine) -> Check:
    gpu = machine.gpu
    if gpu is None:
        return Check("accelerator", "info", "none found: everything runs on the CPU")
    parts = [gpu.name, f"sm_{gpu.sm}" if gpu.sm else "compute capability not told"]
    if gpu.driver:
        parts.append(f"driver {gpu.driver}")
    if gpu.memory is None:
        parts.append("memory shared with the CPU")
    else:
        parts.append(f"{gigabytes(gpu.memory)}" + (f", {gigabytes(gpu.free)} free" if gpu.free is not None else ""))
    if known := precisions_of(machine):
        parts.append("/".join(known))
    if machine.gpus > 1:
        parts.append(f"the first of {machine.gpus}")
    return Check("accelerator", "info", ", ".join(parts))


def _jetpack(machine: Machine) -> Check:
    if not machine.l4t:
        return Check("JetPack", "optional", "/etc/nv_tegra_release does not tell the release", "flash JetPack 7.2")
    told = f"{machine.jetpack or 'of an unknown number'} (L4T {machine.l4t})"
    if machine.l4t_release == "R39.2":
        return Check("JetPack", "ok", told)
    return Check("JetPack", "optional", told, "flash JetPack 7.2 (L4T R39.2): engines and Edge-LLM are made for it")


def _power(machine: Machine) -> Check:
    mode = machine.power_mode
    cure = "sudo nvpmodel -m 0 && sudo jetson_clocks  (published latencies are of that mode)"
    if not mode:
        return Check("power mode", "info", "not told", cure)
    fast = mode.upper().startswith("MAXN")
    return Check("power mode", "ok" if fast else "optional", mode, "" if fast else cure)


def _tensorrt(machine: Machine) -> Check:
    rtx = machine.packages.get("tensorrt-rtx-cu13-libs", "")
    bound = machine.packages.get("tensorrt", "")
    found = [
        f"{machine.tensorrt or ', '.join(machine.nvinfer)} of the system" if machine.nvinfer else "",
        f"{bound} in Python" if bound else "",
        f"TensorRT-RTX {rtx}" if rtx else "",
    ]
    told = ", ".join(text for text in found if text)
    if machine.gpu is None:
        return Check("TensorRT", "info", told or "not installed; there is no GPU for it")
    if (machine.l4t_release, ".".join(machine.tensorrt.split(".")[:2])) == _GARBAGE:
        return Check(
            "TensorRT",
            "optional",
            f"{told}: FP16 engines of Qwen3-VL for a batch of 1 are known to return garbage without a word",
            "flash JetPack 7.2; until then trust only engines that have passed their self-test",
        )
    if told:
        return Check("TensorRT", "ok", told)
    cure = (
        "sudo apt install nvidia-jetpack"
        if machine.jetson
        else "pip install --no-deps tensorrt-rtx-cu13-libs tensorrt-rtx-cu13-bindings"
    )
    return Check("TensorRT", "optional", "not installed; runs the progress model on the GPU", cure)


def _edgellm(machine: Machine) -> Iterator[Check]:
    plan = plan_payload(target_of(machine))
    version = machine.packages.get("tensorrt-edgellm", "")
    there = f"{version} is installed. " if version else ""
    if machine.gpu is None:
        yield Check("Edge-LLM", "info", f"{there}{plan.why}")
    elif plan.payload is None:
        yield Check("Edge-LLM", "optional", f"{there}{plan.why}", plan.instead)
    else:
        cure = "" if version else plan.install
        yield Check("Edge-LLM", "ok" if version else "optional", f"{there or 'Not installed. '}{plan.why}", cure)
        if plan.warning:
            yield Check("Edge-LLM", "optional", plan.warning)


def _fits(machine: Machine, board: Board | None) -> Check:
    if board is None:
        return Check("what fits", "info", "unknown: no preset is written for this machine")
    free = free_for_models(board, machine)
    if free is None:
        return Check("what fits", "info", "unknown: the machine does not tell its free memory")
    budget = alternative(board, free)
    if budget is None:
        told = f"no arrangement of {board.name} in {gigabytes(free)} of free memory"
        return Check("what fits", "optional", told, f"compass-edge boards {board.name}  has what they need")
    told = f"{budget.arrangement.name} of {board.name} ({gigabytes(budget.need)} of {gigabytes(free)} free)"
    return Check("what fits", "info", f"{told}: {budget.arrangement.summary}", f"compass-edge boards {board.name}")
