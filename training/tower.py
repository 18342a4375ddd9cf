"""Trains the vision tower on dense labels.

    python -m training.tower FOOTAGE OUT.pt --steps 3000
    python -m training.tower FOOTAGE OUT.pt --start CHECKPOINT --anchor 0.05    # a tower that decoders have learned to read
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from compass_edge.sim.things import BUTTON_DOWN
from training.checkpoint import states_of
from training.crew import Crew, launched
from training.dense import CLASSES, DenseHeads, hand_of, labels, moved, scores, varied
from training.footage import Footage, load
from training.model import Size, Tiny, config
from training.paint import shuffled
from training.stills import load_stills

TOKENS = {
    "image_token_id": 1,
    "video_token_id": 2,
    "vision_start_token_id": 3,
    "vision_end_token_id": 4,
    "eos_token_id": 5,
}
_BATCH = 32  # pictures a process
_PAINTINGS = 6  # of a film
_KINDS = (
    "block", "tube", "cover", "button", "mat", "light", "held", "gripped", "down", "closed", "touched", "hand", "slot", "at", "is", "under",
)  # fmt: skip
_MOMENTS = 0.5  # of frames of films that are just before or after something changes: the others are soon known


def rate(step: int, behind: float, top: float, *, warm: int = 100, hold: float = 0.4, floor: float = 0.02) -> float:
    """Up, level, and down half a cosine; `behind` is the share of the course that is over."""
    if step < warm:
        return top * (step + 1) / warm
    part = max(0.0, (behind - hold) / (1 - hold))
    return top * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(part, 1.0))))


_TELLING: dict[int, list[int]] = {}  # by their lists of frames, which paintings of a film share


def moments_of(film: Footage) -> list[int]:
    """Places of the pictures beside which a grip, a touch, a press or a light begins or ends."""
    if id(film.frames) in _TELLING:
        return _TELLING[id(film.frames)]
    states = []
    for frame in film.frames:
        shot = film.shots[frame]
        pressed = frozenset(name for name, travel in shot.travel.items() if travel < BUTTON_DOWN)
        states.append((shot.held, shot.touched, shot.is_open, pressed, shot.lamp))
    changed = {at for at in range(1, len(states)) if states[at] != states[at - 1]}
    return _TELLING.setdefault(id(film.frames), sorted(changed | {at - 1 for at in changed}))


def batch(
    films: list[Footage], dice: np.random.Generator, count: int, *, shift: bool, stills: Sequence[Footage] = ()
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    pictures, wanted, hands = [], [], []
    for _ in range(count):
        some = films if not stills or dice.random() < 0.6 else stills
        film = some[dice.integers(len(some))]
        telling = moments_of(film) if some is films and dice.random() < _MOMENTS else []
        at = telling[dice.integers(len(telling))] if telling else int(dice.integers(len(film.frames)))
        picture, seen = film.picture(at), film.maps[at]
        if shift:
            picture, seen = moved(picture, seen, dice)
        pictures.append(picture)
        wanted.append(labels(film, at, seen))
        hands.append(hand_of(film, at))
    return tuple(torch.from_numpy(np.stack(one)) for one in (pictures, wanted, hands))  # type: ignore[return-value]


@torch.no_grad()
def found_of(model: Tiny, heads: DenseHeads, films: list[Footage], crew: Crew) -> dict[str, float]:
    """F1 over patches, by kind of label; of kinds that are there."""
    told, judge = np.zeros((3, len(CLASSES))), np.random.default_rng(7 + crew.rank)
    for _ in range(4):
        pictures, wanted, _ = batch(films, judge, 24, shift=False)
        told += scores(heads, model.tower(model.patches(pictures))[2], wanted, model.order)
    told = sum(crew.gathered(told))
    f1 = 2 * told[0] / np.maximum(told[1] + told[2], 1)
    by_kind = {
        kind: [f1[at] for at, name in enumerate(CLASSES) if kind in name.split() and told[2][at] > 20] for kind in _KINDS
    }
    return {kind: round(float(np.mean(values)), 3) for kind, values in by_kind.items() if values}


def _apart(features: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """How far they are from what they were, as a share of how much that varies."""
    return (features.float() - known.float()).square().mean() / known.float().var()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("footage", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument(
        "--half", action="store_true", help="multiply in bfloat16: nearly twice as fast where a CPU has it"
    )
    parser.add_argument("--start", type=Path, help="a tower to go on with")
    parser.add_argument("--anchor", type=float, default=0.0, help="weight of staying what --start was, in features and taps")
    parser.add_argument("--stills", type=Path, help="a folder of stills, shown four times in ten")
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    if given.rank < 0:
        return launched("training.tower", sys.argv[1:], given.crew)
    crew = Crew(given.rank, given.crew, 29531)
    torch.manual_seed(0)
    model = Tiny(config(Size(), 16, TOKENS))
    heads = DenseHeads(Size().tower, Size().hidden)
    if given.start:
        found = states_of(given.start)
        model.model.visual.load_state_dict(found["visual"])
        heads.take(found["heads"])
    before = copy.deepcopy(model)
    paints = np.random.default_rng(given.rank)
    films = load(given.footage, lambda key: int(key.split("-")[1]) >= 10_000)
    films += [film.painted(shuffled(paints)) for film in films for _ in range(_PAINTINGS - 1)]
    stills = [*load_stills(given.stills), *load_stills(given.stills, "opening")] if given.stills else []
    tuning = load(given.footage, lambda key: int(key.split("-")[1]) < 10_000)
    if crew.leads:
        frames = sum(len(film.frames) for film in films)
        print(
            f"{len(films)} films of {frames} frames, {len(stills)} stills, {len(tuning)} films for tuning", flush=True
        )
    parameters = [*model.model.visual.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": [one for one in parameters if one.ndim > 1], "weight_decay": 0.03},
         {"params": [one for one in parameters if one.ndim <= 1], "weight_decay": 0.0}], betas=(0.9, 0.97), fused=True,
    )  # fmt: skip
    dice = np.random.default_rng(1000 + given.rank)
    chance = torch.Generator().manual_seed(given.rank)
    began, mean, drift = time.monotonic(), 0.0, 0.0
    for step in range(given.steps):
        pictures, wanted, hands = batch(films, dice, _BATCH, shift=True, stills=stills)
        with torch.autocast("cpu", torch.bfloat16, enabled=given.half):
            patches = varied(model.patches(pictures), chance)
            features, taps, states = model.tower(patches)
            loss = heads.loss(features, taps, states, wanted, model.order, hands)
            away = torch.zeros(())
            if given.anchor:
                with torch.no_grad():
                    known = before.tower(patches)[:2]
                away = sum((_apart(one, other) for one, other in zip((features, taps), known, strict=True)), away)
        optimizer.zero_grad(set_to_none=True)
        (loss + given.anchor * away).backward()
        crew.average(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, step / given.steps, given.rate)
        optimizer.step()
        mean = loss.item() if step == 0 else 0.98 * mean + 0.02 * loss.item()
        drift = away.item() if step == 0 else 0.98 * drift + 0.02 * away.item()
        if (step + 1) % 250 == 0 or step + 1 == given.steps:
            found = found_of(model, heads, tuning or films, crew)
            if crew.leads:
                minutes = round((time.monotonic() - began) / 60, 1)
                told = {"step": step + 1, "minutes": minutes, "loss": round(mean, 4), "away": round(drift, 4), "f1": found}
                print(json.dumps(told), flush=True)
                torch.save({"visual": model.model.visual.state_dict(), "heads": heads.state_dict()}, given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
