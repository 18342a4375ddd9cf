"""Dense labels: which things each patch of a picture shows, in what state, and how they stand to one another. What the vision tower
learns first: a place knows what stands on it and which of several it is, a thing knows where it stands.

Only the tower's own weights are kept of this: the heads that read the labels off it are thrown away.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from compass_edge.sim.deed import bare
from compass_edge.sim.shot import Shot
from compass_edge.sim.things import BUTTON_DOWN, MOVABLE, Thing
from training.footage import ARM, CELL, HAND, SIDE, Footage
from training.model import CELLS, GRID, PATCH, VISUAL
from training.stage import Stage, thing_word

_SIDES = ("leftmost", "middle", "rightmost", "left", "right", "front", "back")
_PAINTS = ("red", "green", "blue", "yellow", "purple", "orange")
_SLOTS = ("left", "middle", "right")
CLASSES = (
    *(f"{paint} {kind}" for kind in ("block", "tube", "cover", "button", "mat") for paint in _PAINTS),
    "white mat", "black rack", "brown rack", "gray box", "lamp", "toy", "hand", "arm",
    *(f"{paint} light" for paint in _PAINTS),
    "held", "down", "closed", "touched",
    *(f"under {paint} {kind}" for kind in MOVABLE for paint in _PAINTS), "under nothing",
    *(f"at {word}" for word in _SIDES), *(f"is {word}" for word in _SIDES),
    *(f"on {paint} mat" for paint in (*_PAINTS, "white")), "on black rack", "on brown rack",
    # Later than the others: a checkpoint's heads may have been taught without them.
    "gripped", *(f"on {paint} block" for paint in _PAINTS),
    *(f"{side} slot {paint}" for side in _SLOTS for paint in (*_PAINTS, "empty")),
)  # fmt: skip
_NUMBER = {name: at for at, name in enumerate(CLASSES)}
_SMALL = PATCH // CELL
_SEEN = 0.12  # of a patch that a thing must fill
_RARE = {"down": 6.0}
# States that verdicts hang on, and of which labels they are one: asked again where those are seen, and nowhere else. Among all
# labels of all patches a few fingers count for nothing, and what was just let go of was taken for held.
_DECISIVE = (
    ("closed", ("hand",)),
    ("gripped", tuple(f"{paint} {kind}" for kind in MOVABLE for paint in _PAINTS)),
    ("down", tuple(f"{paint} button" for paint in _PAINTS)),
)
_OF_DECISIVE = 0.1  # weight


def labels(footage: Footage, at: int, seen: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[patches, classes] of a filmed frame; `seen` is its map, moved as its picture was. In the order of rows."""
    shot = footage.shots[footage.frames[at]]
    stage = _stage_of(footage)
    made = np.zeros((GRID, GRID, len(CLASSES)), np.uint8)
    for number in np.unique(seen):
        if number == HAND:
            names = ["hand"] + ["closed"] * (not shot.is_open)
        elif number == ARM:
            names = ["arm"]
        elif number < len(footage.script.things):
            thing = footage.script.things[number]
            names = [*_states(thing, shot), *_relations(stage, thing, shot)]
        else:
            continue
        share = (seen == number).reshape(GRID, _SMALL, GRID, _SMALL).mean(axis=(1, 3)) > _SEEN
        for name in names:
            if name in _NUMBER:
                made[..., _NUMBER[name]] |= share
    return made.reshape(GRID * GRID, -1)


_STAGES: dict[int, Stage] = {}  # by their scripts, which they keep alive


def _stage_of(footage: Footage) -> Stage:
    key = id(footage.script)
    if key not in _STAGES:
        _STAGES[key] = Stage(footage.script)
    return _STAGES[key]


def _states(thing: Thing, shot: Shot) -> list[str]:
    names = [thing.kind if thing.kind in ("lamp", "toy") else thing_word(thing)]
    if thing.kind == "lamp" and shot.lamp:
        names.append(f"{shot.lamp} light")
    if shot.held == thing.name:
        names.append("held")
    if thing.name in shot.touched:
        names.append("touched")
    if shot.travel.get(thing.name, 0.0) < BUTTON_DOWN:
        names.append("down")
    return names


def _relations(stage: Stage, thing: Thing, shot: Shot) -> list[str]:
    """Of a mat what stands on it and which one it is; of a thing where it stands and which one it is."""
    if thing.kind == "mat":
        places = [place for place in stage.places.values() if place.within is None and place.at == thing.at]
        if not places or not stage.movable:
            return []
        on = stage.content(min(places, key=lambda one: one.base), shot, stage.movable[0]).removesuffix(" gripped")
        return [f"under {'nothing' if on == 'empty' else on}", *_words("at", places[0].name)]
    if thing.kind == "button":
        return _words("is", stage.button(thing))
    if thing.kind == "rack":
        return _slots(stage, thing, shot)
    if thing.kind not in MOVABLE:
        return []
    names = [*_words("is", stage.name_of(thing, shot)), *["gripped"] * stage.gripped(thing, shot)]
    above = [one for one in stage.movable if bare(getattr(stage.place_of(one, shot), "name", "")) == thing_word(thing)]
    names += [f"under {thing_word(one)}" for one in above]
    place = stage.place_of(thing, shot)
    if place is not None:
        stands_on = " ".join(place.name.split()[-2:])
        mats = [thing_word(one) for one in stage.things if one.kind == "mat" and one.at == place.at]
        names += [*_words("at", place.name), f"on {stands_on if not mats or stands_on.endswith(' block') else mats[0]}"]
    return names


def _slots(stage: Stage, rack: Thing, shot: Shot) -> list[str]:
    """Of a rack of three slots what stands in each; a slot that the script does not name stays empty."""
    found = []
    for side in _SLOTS if rack.slots == len(_SLOTS) else ():
        place = stage.places.get(f"the {side} slot of the {thing_word(rack)}")
        stands = "empty" if place is None else stage.content(place, shot, stage.movable[0])
        found.append(f"{side} slot {stands.split()[0]}")
    return found


def _words(before: str, name: str) -> list[str]:
    return [f"{before} {word}" for word in name.replace(",", "").split() if word in _SIDES]


def moved(
    picture: NDArray[np.uint8], seen: NDArray[np.uint8], dice: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Both, up to three cells aside: as if the camera had been turned a little."""
    down, right = (int(value) for value in dice.integers(-3, 4, 2))
    return _shifted(picture, down * CELL, right * CELL), _shifted(seen, down, right)


def _shifted(array: NDArray[np.uint8], down: int, right: int) -> NDArray[np.uint8]:
    rows = np.clip(np.arange(array.shape[0]) - down, 0, array.shape[0] - 1)
    columns = np.clip(np.arange(array.shape[1]) - right, 0, array.shape[1] - 1)
    return array[rows][:, columns]


def varied(patches: Tensor, dice: torch.Generator) -> Tensor:
    """Other light, picture by picture."""
    count = patches.shape[0]
    gain = (
        1 + 0.12 * torch.randn(count, 1, 3, 1, generator=dice) * 0.6 + 0.1 * torch.randn(count, 1, 1, 1, generator=dice)
    )
    shift = 0.06 * torch.randn(count, 1, 1, 1, generator=dice)
    split = patches.view(count, patches.shape[1], 3, -1)
    return (split * gain + shift).view_as(patches)


_PLACES = torch.stack([torch.arange(VISUAL) // CELLS, torch.arange(VISUAL) % CELLS], -1).float() / CELLS * 2 - 1


class DenseHeads(nn.Module):
    """Read the labels off the tower's states, its features and its taps, and where the hand is off the features."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.states, self.features, self.taps = (nn.Linear(size, len(CLASSES)) for size in (width, hidden, hidden))
        self.place = nn.Linear(2 * hidden, 2)
        self.look, self.hand = nn.Linear(hidden, 1), nn.Sequential(nn.Linear(hidden, 64), nn.GELU(), nn.Linear(64, 4))
        rare = torch.full((len(CLASSES),), 3.0)
        for name, weight in _RARE.items():
            rare[_NUMBER[name]] = weight
        self.register_buffer("rare", rare, persistent=False)

    def take(self, states: dict[str, Tensor]) -> None:
        """Of a checkpoint; labels that came later begin with nothing."""
        known = {}
        for name, values in self.state_dict().items():
            known[name] = torch.zeros_like(values)
            known[name][: len(states[name])] = states[name]
        self.load_state_dict(known)

    def loss(
        self, features: Tensor, taps: Tensor, states: Tensor, wanted: Tensor, order: Tensor, hand: Tensor
    ) -> Tensor:
        """wanted [N, patches, classes] in rows; hand [N, 4]: where it is, and how far open."""
        patch = wanted[:, order].float()
        merged = patch.view(len(wanted), VISUAL, 4, -1).amax(2)
        by_state, by_feature = self.states(states), self.features(features)
        total = F.binary_cross_entropy_with_logits(by_state, patch, pos_weight=self.rare)
        total = total + F.binary_cross_entropy_with_logits(by_feature, merged, pos_weight=self.rare)
        total = total + 0.5 * F.binary_cross_entropy_with_logits(self.taps(taps), merged, pos_weight=self.rare)
        for said, known in ((by_state, patch), (by_feature, merged)):
            total = total + _OF_DECISIVE * decisive(said, known)
        # Where a token is: labels do not ask for it, and a decoder that is to tell the leftmost from the rightmost does.
        total = total + 0.3 * F.smooth_l1_loss(
            self.place(torch.cat([features, taps], -1)), _PLACES.expand(len(wanted), -1, -1), beta=0.2
        )
        pooled = (self.look(features).softmax(1) * features).sum(1)
        return total + 0.3 * F.smooth_l1_loss(self.hand(pooled), hand, beta=0.2)


def decisive(said: Tensor, known: Tensor) -> Tensor:
    """How wrong the states are that verdicts hang on, each where it can be seen."""
    total = said.new_zeros(())
    for state, kinds in _DECISIVE:
        there = known[..., [_NUMBER[kind] for kind in kinds]].amax(-1) > 0
        if there.any():
            at = _NUMBER[state]
            total = total + F.binary_cross_entropy_with_logits(said[..., at][there], known[..., at][there])
    return total


def hand_of(footage: Footage, at: int) -> NDArray[np.float32]:
    shot = footage.shots[footage.frames[at]]
    x, y, z = shot.gripper
    return np.array([x * 8, y * 5, z * 12 - 1.5, shot.opening * 40 - 1], np.float32)


def scores(heads: DenseHeads, states: Tensor, wanted: Tensor, order: Tensor) -> NDArray[np.float64]:
    """True positives, positives and truths of each class."""
    found, truth = (heads.states(states) > 0).numpy(), wanted[:, order].numpy() > 0
    return np.stack([(found & truth).sum((0, 1)), found.sum((0, 1)), truth.sum((0, 1))]).astype(np.float64)


assert SIDE % (PATCH * 2) == 0
