"""A preset: models that go together, and the loop's settings for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.settings import Settings


@dataclass(frozen=True, slots=True)
class Preset:
    """Everything in it is a function of some module, so that a preset can be sent to a worker process."""

    name: str
    about: str
    models: Callable[[int | None], Models]  # on so many threads; None: one a core
    names: Callable[[], dict[Role, str]]  # those that the models have, without loading them
    settings: Callable[[float], Settings]  # for films of so many frames a second
    knows: str = ""  # what the models have learned: for those who show them something else
