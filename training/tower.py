"""Trains the vision tower on dense labels.

python -m training.tower FOOTAGE OUT.pt --steps 3000
python -m training.tower FOOTAGE OUT.pt --start CHECKPOINT --anchor 0.05   # a tower that decoders have learned to read
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

from training.checkpoint import states_of
from training.crew import Crew, launched
from training.dense import CLASSES, DenseHeads, hand_of, labels, moved, scores, varied
from training.footage import Footage, is_training, is_tuning, load
from training.model import Size, Tiny, config
from training.moments import MOMENTS, moments_of
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


def rate(step: int, behind: float, top: float, *, warm: int = 100, hold: float = 0.4, floor: float = 0.02) -> float:
    """Up, level, and down half a cosine; `behind` is the share of the course that is over."""
    if step < warm:
        return top * (step + 1) / warm
    part = max(0.0, (behind - hold) / (1 - hold))
    return top * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(part, 1.0))))


def batch(
    films: list[Footage], dice: np.random.Generator, count: int, *, shift: bool, stills: Sequence[Footage] = ()
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    pictures, wanted, hands = [], [], []
    for _ in range(count):
        some = films if not stills or dice.random() < 0.6 else stills
        film = some[dice.integers(len(some))]
        telling = moments_of(film) if some is films and dice.random() < MOMENTS else []
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
        kind: [f1[at] for at, name in enumerate(CLASSES) if kind in name.split() and told[2][at] > 20]
        for kind in _KINDS
    }
    return {kind: round(float(np.mean(values)), 3) for kind, values in by_kind.items() if values}


class Course:
    """One process of the crew: its tower, what it is shown, and how far it has come."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.crew = given, Crew(given.rank, given.crew, 29531)
        torch.manual_seed(0)
        self.model, self.heads = Tiny(config(Size(), 16, TOKENS)), DenseHeads(Size().tower, Size().hidden)
        if given.start:
            found = states_of(given.start)
            self.model.model.visual.load_state_dict(found["visual"])
            self.heads.take(found["heads"])
        self.before = copy.deepcopy(self.model)
        paints = np.random.default_rng(given.rank)
        films = load(given.footage, is_training)
        self.films = [*films, *(film.painted(shuffled(paints)) for film in films for _ in range(_PAINTINGS - 1))]
        self.stills = [*load_stills(given.stills), *load_stills(given.stills, "opening")] if given.stills else []
        self.judges = load(given.footage, is_tuning) or self.films
        self.parameters = [*self.model.model.visual.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.AdamW(
            [{"params": [one for one in self.parameters if one.ndim > 1], "weight_decay": 0.03},
             {"params": [one for one in self.parameters if one.ndim <= 1], "weight_decay": 0.0}],
            betas=(0.9, 0.97), fused=True,
        )  # fmt: skip
        self.dice = np.random.default_rng(1000 + given.rank)
        self.chance = torch.Generator().manual_seed(given.rank)

    def take_step(self, step: int) -> tuple[float, float]:
        """The loss of the labels, and how far the features are from what they were."""
        pictures, wanted, hands = batch(self.films, self.dice, _BATCH, shift=True, stills=self.stills)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.given.half):
            patches = varied(self.model.patches(pictures), self.chance)
            features, taps, states = self.model.tower(patches)
            loss = self.heads.loss(features, taps, states, wanted, self.model.order, hands)
            away = self._away(patches, features, taps)
        self.optimizer.zero_grad(set_to_none=True)
        (loss + self.given.anchor * away).backward()
        self.crew.average(self.parameters, 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate(step, step / self.given.steps, self.given.rate)
        self.optimizer.step()
        return loss.item(), away.item()

    def _away(self, patches: torch.Tensor, *made: torch.Tensor) -> torch.Tensor:
        """As a share of how much features and taps vary: decoders that read them have learned what they were."""
        if not self.given.anchor:
            return torch.zeros(())
        with torch.no_grad():
            known = [one.float() for one in self.before.tower(patches)[:2]]
        return torch.stack(
            [(one.float() - other).square().mean() / other.var() for one, other in zip(made, known, strict=True)]
        ).sum()

    def save(self) -> None:
        torch.save({"visual": self.model.model.visual.state_dict(), "heads": self.heads.state_dict()}, self.given.out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("footage", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--half", action="store_true", help="multiply in bfloat16: faster where a CPU has it (README)")
    parser.add_argument("--start", type=Path, help="a tower to go on with")
    parser.add_argument(
        "--anchor", type=float, default=0.0, help="weight of staying what --start was, in features and taps"
    )
    parser.add_argument("--stills", type=Path, help="a folder of stills, shown four times in ten")
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    if given.rank < 0:
        return launched("training.tower", sys.argv[1:], given.crew)
    course, began, means = Course(given), time.monotonic(), np.zeros(2)
    for step in range(given.steps):
        found = np.array(course.take_step(step))
        means = found if step == 0 else 0.98 * means + 0.02 * found
        if (step + 1) % 250 == 0 or step + 1 == given.steps:
            f1 = found_of(course.model, course.heads, course.judges, course.crew)
            if course.crew.leads:
                minutes, (loss, away) = round((time.monotonic() - began) / 60, 1), means.round(4).tolist()
                line = json.dumps({"step": step + 1, "minutes": minutes, "loss": loss, "away": away, "f1": f1})
                print(line, flush=True)
                with given.out.with_suffix(".jsonl").open("a") as log:
                    print(line, file=log)
                course.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
