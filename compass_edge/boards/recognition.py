"""Recognition: which of the boards a machine is, and how far it falls short of one."""

from __future__ import annotations

from compass_edge.boards.board import BOARDS, GIB, OF_SM, Board
from compass_edge.boards.machine import Machine

# A board's memory as Linux sees it is less than what is sold: 7.4 of 8 GiB, 61.4 of 64.
_SEEN = 0.85


def board_of(machine: Machine) -> Board | None:
    """The board whose preset is for this machine; None for one that no preset is written for."""
    gpu = machine.gpu
    if gpu is None or gpu.sm is None:
        return BOARDS["cpu"] if gpu is None else None
    if machine.jetson or gpu.sm == 121:
        return _largest(machine.memory, *(board for board in BOARDS.values() if gpu.sm in board.sms and board.unified))
    return _largest(gpu.memory, *(board for board in BOARDS.values() if gpu.sm in board.sms and not board.unified))


def _largest(memory: int | None, *boards: Board) -> Board | None:
    fitting = [board for board in boards if memory is not None and memory >= _SEEN * board.memory]
    return max(fitting, key=lambda board: board.memory, default=None)


def free_for_models(board: Board, machine: Machine) -> int | None:
    """Bytes that may be taken now; None if the machine does not say."""
    if board.unified:
        return machine.free
    return machine.gpu.free if machine.gpu else None


def total_for_models(board: Board, machine: Machine) -> int | None:
    if board.unified:
        return machine.memory
    return machine.gpu.memory if machine.gpu else None


def shortfall(board: Board, machine: Machine) -> str:
    """Why this machine is not such a board, in one sentence; empty if it is, or is better."""
    if board.name == "cpu":
        return ""
    gpu = machine.gpu
    named = f"The preset {board.name} is for {board.about} ({' or '.join(f'sm_{sm}' for sm in board.sms)})"
    if gpu is None:
        return f"{named}, and no NVIDIA GPU was found here."
    if gpu.sm not in board.sms:
        came = f"sm_{gpu.sm}" if gpu.sm else "a GPU that does not say its compute capability"
        return f"{named}, and {gpu.name} ({came}) came."
    total = total_for_models(board, machine)
    if total is not None and total < _SEEN * board.memory:
        return f"{named}, and {gpu.name} with {total / GIB:.1f} GiB came."
    return ""


def precisions_of(machine: Machine) -> tuple[str, ...]:
    return OF_SM.get(machine.gpu.sm, ()) if machine.gpu and machine.gpu.sm else ()
