"""The context floors of the episodes that tell what can be seen in every frame, as the simulator's do."""

from __future__ import annotations

from collections.abc import Sequence

from compass_edge.data.episode import Episode
from compass_edge.eval.floor import FRAME_ALONE, Floors
from compass_edge.eval.result import Result
from compass_edge.sim.scenes import context_floors

_NEEDED = {"scene", "shots", "visible"}


def floors_of(episodes: Sequence[Episode]) -> tuple[Floors, Sequence[Episode]] | None:
    """And the episodes that they are of. None: there is none that tells."""
    told = [one for one in episodes if one.kind == "positive" and one.size and set(one.tracks) >= _NEEDED]
    if not told:
        return None
    return context_floors(told), told


def frame_alone(floors: Floors, episodes: Sequence[Episode]) -> list[Result]:
    return [Result(one.id, FRAME_ALONE, curve) for one, curve in zip(episodes, floors.best_frame_estimate, strict=True)]
