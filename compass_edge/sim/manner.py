"""The manner of an episode: how somebody works."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.sim.dice import Dice


@dataclass(frozen=True, slots=True)
class Manner:
    """Nobody repeats a motion exactly."""

    speed: float = 1.0
    pause: float = 0.25  # how often there is one before something is done
    retreat: float = 0.5  # how often the hand goes back to where it waits
    regrasp: float = 0.08  # how often the fingers close twice
    miss: float = 0.0  # how often they close on nothing first

    @classmethod
    def drawn(cls, dice: Dice, *, retreat: float, clumsy: bool) -> Manner:
        return cls(speed=dice.uniform(0.8, 1.2), retreat=retreat, miss=0.15 if clumsy else 0.0)
