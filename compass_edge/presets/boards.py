"""A preset for each board: which model plays which role, at which precision, on which engine, within which limits."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import BOARDS, Board
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.settings import Settings
from compass_edge.presets.board_models import names, open_models
from compass_edge.presets.preset import Preset


@dataclass(frozen=True, slots=True)
class BoardModels:
    """A function with its board, which can be sent to another process and compared there."""

    board: str

    def __call__(self, threads: int | None = None) -> Models:
        return open_models(self.board, threads)


@dataclass(frozen=True, slots=True)
class BoardNames:
    board: str

    def __call__(self) -> dict[Role, str]:
        return names(self.board)


def settings(fps: float) -> Settings:
    """The paper's. None of these models was calibrated here."""
    return settings_at(fps)


def _preset(board: Board) -> Preset:
    parts = "; ".join(
        f"{part.model} in {part.formats.decoder} as {' and '.join(part.roles)}"
        for part in preset_arrangement(board).parts
    )
    return Preset(board.name, f"{board.about}: {parts}", BoardModels(board.name), BoardNames(board.name), settings)


BOARD_PRESETS: dict[str, Preset] = {board.name: _preset(board) for board in BOARDS.values()}
