"""Stills: some frames of a film, as models get them."""

from __future__ import annotations

from collections.abc import Iterable

from compass_edge.data.episode import Episode
from compass_edge.errors import CompassError
from compass_edge.models import Image


def stills(episode: Episode, wanted: Iterable[int]) -> dict[int, Image]:
    """By their numbers. The film is read once, as far as the last of them."""
    numbers = set(wanted)
    found = {
        number: Image(f"{episode.film.key}/{number}", picture)
        for number, picture in episode.film.pictures(1, max(numbers, default=-1) + 1)
        if number in numbers
    }
    if len(found) < len(numbers):
        missing = min(numbers - set(found))
        raise CompassError(f"The film of episode '{episode.id}' must have a frame {missing}, and it did not come.")
    return found
