"""compass-tiny on films of real tables and of other simulators: it knows one table, and has to say that these are others."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from conftest import VIDEOS

from compass_edge.data.bundled import BUNDLED
from compass_edge.data.dataset import open_dataset
from compass_edge.frames.source import open_source
from compass_edge.loop.call import Models
from compass_edge.models import Image
from compass_edge.presets import tiny
from compass_edge.roles import orienter
from compass_edge.roles.reply import InvalidReply

FILMS = sorted(VIDEOS.glob("*/*.mp4"))
pytestmark = pytest.mark.skipif(not FILMS, reason="the videos of other tables are not here")
# What it has learned to plan; of other words it would know that they are not its own.
KNOWN = [episode.instruction for episode in open_dataset(BUNDLED).episodes()] + [
    "Stack the red block on the green block and the blue block on top.",
    "Tap the four mats in the order red, green, blue, yellow.",
    "Take the tube with the red cap out of its slot and put it back 3 times.",
]

FOREIGN = [
    "Put the cup on the saucer.",
    "Lift the bowl and place it back on the plate 3 times.",
    "Put the cream cheese in the nearest basket and place that basket in the center.",
    "Put green stick in brown bowl.",
    "Pick up the blue cube and place it on the target, 3 times, then press the button.",
    "Clean the table.",
]


@pytest.fixture(scope="module")
def models() -> Models:
    return tiny.models(threads=2)


def middle(path: Path) -> Image:
    with open_source(str(path)) as source:
        frames = [frame.rgb() for frame in source]
    return Image(path.name, frames[len(frames) // 2])


@pytest.fixture(scope="module")
def pictures() -> list[Image]:
    return [middle(path) for path in FILMS]


def taken(models: Models, pictures: list[Image], instructions: list[str]) -> list[tuple[str, str]]:
    found = []
    for picture in pictures:
        for instruction in instructions:
            question = orienter.first(instruction, picture, tau=True, max_steps=32)
            (reply,) = models.orienter.ask([question], lambda at, text: None, lambda: False)
            with contextlib.suppress(InvalidReply):  # no plan either
                if orienter.read_first(reply, tau=True, max_steps=32).grounded:
                    found.append((picture.digest, instruction))
    return found


def test_what_these_films_show_is_not_planned(models: Models, pictures: list[Image]) -> None:
    """Measured: none of 66; before it had learned of other places, 3."""
    assert len(pictures) >= 10
    found = taken(models, pictures, FOREIGN)
    assert len(found) <= 1, found


def test_other_tables_are_mostly_not_taken_for_its_own(models: Models, pictures: list[Image]) -> None:
    """Measured: 26 of 66; before, 56."""
    found = taken(models, pictures, KNOWN)
    assert len(found) <= len(pictures) * len(KNOWN) // 2, found
