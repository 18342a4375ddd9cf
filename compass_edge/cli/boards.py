"""`compass-edge boards`: the boards with presets; of one, its roles, its memory budget line by line, and what to expect."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import BOARDS, Board, find_board
from compass_edge.boards.budget import Budget, budget_of
from compass_edge.boards.fitting import ARRANGEMENT, budgets, find_arrangement, gigabytes
from compass_edge.boards.published import SOURCE, expectations
from compass_edge.boards.remedies import commands_for

_UNTRIED = "The budgets are computed. None of these boards was at hand: nothing here has run on one."


def run(arguments: argparse.Namespace) -> int:
    if arguments.name is None:
        _list(arguments.json)
    else:
        board = find_board(arguments.name)
        chosen = arguments.arrangement
        arrangement = find_arrangement(board, chosen) if chosen else preset_arrangement(board)
        budget = budget_of(board, arrangement)
        if arguments.json:
            print(json.dumps(_document(board, budget), indent=1))
        else:
            _show(board, budget)
    return 0


def _list(as_json: bool) -> None:
    made = {board.name: budget_of(board, preset_arrangement(board)) for board in BOARDS.values()}
    if as_json:
        rows = [{**_facts(board), "preset": _summary(made[board.name])} for board in BOARDS.values()]
        print(json.dumps({"boards": rows, "note": _UNTRIED}, indent=1))
        return
    for board in BOARDS.values():
        budget = made[board.name]
        chips = ", ".join(f"sm_{sm}" for sm in board.sms) or "no GPU"
        print(f"{board.name:<12} {board.about} ({chips})")
        print(f"{'':<12} {budget.arrangement.summary}")
        print(f"{'':<12} {gigabytes(budget.need)} of {gigabytes(board.usable)} that are left beside the system")
    print(f"\n{_UNTRIED} `compass-edge boards NAME` has one line by line.")


def _show(board: Board, budget: Budget) -> None:
    print(f"{board.name}: {board.about}")
    chips = ", ".join(f"sm_{sm}" for sm in board.sms)
    print(f"{chips + ', ' if chips else ''}{'/'.join(board.precisions)}", end="")
    print(f", {board.bandwidth:g} GB/s" if board.bandwidth else "")
    for part in budget.arrangement.parts:
        mine = [line for line in budget.lines if line.part == part.title]
        print(f"\n{part.title}")
        for line in mine:
            mark = "~" if line.estimate else " "
            print(f"  {gigabytes(line.bytes):>10} {mark} {line.what:<20} {line.how}")
        print(f"  {gigabytes(budget.need_of([part])):>10}   in all")
    shared = "memory that CPU and GPU share" if board.unified else "the card's memory"
    verdict = f"{gigabytes(abs(budget.spare))} {'to spare' if budget.fits else 'TOO LITTLE'}"
    print(f"\n  {gigabytes(budget.need):>10}   models")
    print(f"  {gigabytes(board.share):>10} ~ system and other programs")
    print(f"  {gigabytes(board.memory):>10}   {shared}: {verdict}")
    print("  ~ is an estimate; the rest follows from the models' shapes.")
    _show_arrangements(board, budget)
    print("\nTo get there:")
    for part in budget.arrangement.parts:
        for command in commands_for(board, budget, part, edgellm=False):
            print(f"  {command}")
    _show_expectations(board, budget)
    print(f"\n{_UNTRIED}")


def _show_arrangements(board: Board, budget: Budget) -> None:
    print(f"\nArrangements, chosen with {ARRANGEMENT}:")
    for one in budgets(board):
        mark = "*" if one.arrangement.name == budget.arrangement.name else " "
        fits = "fits" if one.fits else f"{gigabytes(-one.spare)} too little"
        print(f" {mark} {one.arrangement.name:<11} {gigabytes(one.need):>10}  {fits}")


def _show_expectations(board: Board, budget: Budget) -> None:
    rows = expectations(board, budget.arrangement)
    if not rows:
        print("\nNothing is published about these models on this board.")
        return
    print(f"\nExpectations, {SOURCE}:")
    for row in rows:
        print(f"  {row.sentence}")


def _facts(board: Board) -> dict[str, Any]:
    return {**asdict(board), "usable": board.usable}


def _summary(budget: Budget) -> dict[str, Any]:
    return {
        "name": budget.arrangement.name,
        "parts": [asdict(part) for part in budget.arrangement.parts],
        "need": budget.need,
        "spare": budget.spare,
        "fits": budget.fits,
    }


def _document(board: Board, budget: Budget) -> dict[str, Any]:
    parts = budget.arrangement.parts
    return {
        "board": _facts(board),
        "arrangement": {**_summary(budget), "lines": [asdict(line) for line in budget.lines]},
        "arrangements": [{"name": one.arrangement.name, "need": one.need, "fits": one.fits} for one in budgets(board)],
        "commands": [one for part in parts for one in commands_for(board, budget, part, edgellm=False)],
        "expectations": {"source": SOURCE, "rows": [asdict(row) for row in expectations(board, budget.arrangement)]},
        "sources": {part.model: part.shape.source for part in parts},
        "note": _UNTRIED,
    }


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "boards",
        help="robot computers with presets, and what fits into their memory",
        description="Lists the boards that presets are written for. Of one: which model plays which role, the memory budget line "
        "by line, what else fits, the commands to get there, and latencies that others have published.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a board")
    parser.add_argument("--arrangement", metavar="A", help="another arrangement than the preset's")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)
