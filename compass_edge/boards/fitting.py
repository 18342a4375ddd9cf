"""Fitting: whether an arrangement fits, and which smaller one does."""

from __future__ import annotations

from compass_edge.boards.arrangements import arrangements
from compass_edge.boards.board import Board
from compass_edge.boards.budget import Budget, budget_of
from compass_edge.boards.part import Arrangement
from compass_edge.errors import EnvironmentFault, UsageError

ARRANGEMENT = "COMPASS_EDGE_ARRANGEMENT"


def gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"


def budgets(board: Board) -> list[Budget]:
    """Of all its arrangements, the largest first."""
    made = (budget_of(board, arrangement) for arrangement in arrangements(board))
    return sorted(made, key=lambda budget: -budget.need)


def alternative(board: Board, available: int, below: int | None = None) -> Budget | None:
    """The largest that fits so many bytes, and is smaller than `below`."""
    return next((one for one in budgets(board) if one.need <= available and (below is None or one.need < below)), None)


def find_arrangement(board: Board, name: str) -> Arrangement:
    known = {one.name: one for one in arrangements(board)}
    if name not in known:
        raise UsageError(f"{board.name} has no arrangement '{name}'. It has: {', '.join(known)}.")
    return known[name]


def check_fit(budget: Budget, available: int, what: str, need: int | None = None) -> None:
    """`what` names the memory, as in 'free memory'; `need`: of the parts that are not loaded yet."""
    wanted = budget.need if need is None else need
    if wanted <= available:
        return
    board, arrangement = budget.board, budget.arrangement
    smaller = alternative(board, available, budget.need)
    short = (
        f"The arrangement '{arrangement.name}' of {board.name} ({arrangement.summary}) needs {gigabytes(wanted)}, and there is "
        f"{gigabytes(available)} of {what}: {gigabytes(wanted - available)} too little."
    )
    if smaller is None:
        raise EnvironmentFault(
            f"{short} No arrangement of {board.name} fits that. Stop other programs, or let another computer serve the "
            "vision-language model."
        )
    raise EnvironmentFault(
        f"{short} What fits is '{smaller.arrangement.name}' ({smaller.arrangement.summary}), which needs "
        f"{gigabytes(smaller.need)}: set {ARRANGEMENT}={smaller.arrangement.name}. `compass-edge boards {board.name}` has "
        "the budget line by line."
    )
