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


@pytest.fixture(scope="module")
def models() -> Models:
    return tiny.models(threads=2)


def middle(path: Path) -> Image:
    with open_source(str(path)) as source:
        frames = [frame.rgb() for frame in source]
    return Image(path.name, frames[len(frames) // 2])


def test_other_tables_are_not_taken_for_its_own(models: Models) -> None:
    taken = []
    for path in FILMS:
        picture = middle(path)
        for instruction in KNOWN:
            question = orienter.first(instruction, picture, tau=True, max_steps=32)
            (reply,) = models.orienter.ask([question], lambda at, text: None, lambda: False)
            with contextlib.suppress(InvalidReply):  # no plan either
                if orienter.read_first(reply, tau=True, max_steps=32).grounded:
                    taken.append((path.name, instruction))
    assert len(FILMS) >= 10
    assert len(taken) <= len(FILMS) * len(KNOWN) // 10, taken  # measured: 4 of 66
