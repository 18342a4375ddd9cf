"""Paint: a film shown in other colours, in its pictures, its script and its lamp alike, without drawing it again.

A pixel of a painted thing is its paint times the light that falls on it; the light is kept. Films are few and their colours are
few: without this a model learns which colours go together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.sim.tasks.draft import PAINTS
from compass_edge.sim.things import COLOURS, Thing

_ALBEDO = np.array([COLOURS[paint] for paint in PAINTS], np.float32)
_WORDS = re.compile(rf"\b(?:{'|'.join(PAINTS)})\b")
Paints = dict[str, str]  # which paint each has become


def shuffled(dice: np.random.Generator) -> Paints:
    return {paint: PAINTS[at] for paint, at in zip(PAINTS, dice.permutation(len(PAINTS)), strict=True)}


def picture_in(paints: Paints, picture: NDArray[np.uint8], coat: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture in other paints; `coat` says which paint a pixel has, 0 for none."""
    rows, columns = np.nonzero(coat)
    paint = coat[rows, columns].astype(np.intp) - 1
    before = _ALBEDO[paint]
    after = np.array([COLOURS[paints[name]] for name in PAINTS], np.float32)[paint]
    light = (picture[rows, columns] * before).sum(1) / (before * before).sum(1)
    painted = picture.copy()
    painted[rows, columns] = np.clip(light[:, None] * after + 0.5, 0, 255).astype(np.uint8)
    return painted


def told_in(paints: Paints, value: Any) -> Any:
    """The same in every text and thing; names, which the state knows things by, stay."""
    if isinstance(value, str):
        return _WORDS.sub(lambda found: paints[found[0]], value)
    if isinstance(value, tuple | list):
        return type(value)(told_in(paints, one) for one in value)
    if isinstance(value, Mapping):
        return {key: told_in(paints, one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        kept = {"name"} if isinstance(value, Thing) else set()
        return replace(value, **{field.name: told_in(paints, getattr(value, field.name)) for field in fields(value) if field.name not in kept})  # fmt: skip
    return value
