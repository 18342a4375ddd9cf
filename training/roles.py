"""Trains the decoder in all three roles, on the features of a finished tower or, with --live, together with it.

    python -m training.roles FOOTAGE STILLS FEATURES TOKENIZER TOWER OUT.pt --steps 7000

TOWER is what `tower` or `balance` has saved, or a checkpoint. Stopped, the same command goes on at its last checkpoint. OUT.jsonl is the log that the plot is drawn from.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from training.batch import Batch, Scribe, made
from training.checkpoint import states_of
from training.clips import clip
from training.crew import Crew, launched
from training.dense import DenseHeads
from training.examine import examine
from training.features import Features, Fresh, Live, OpeningFeatures
from training.films import Films, Sample
from training.footage import load
from training.model import BINS, Size, Tiny, config
from training.samples import SAMPLERS
from training.stills import load_stills
from training.tokenizer import ids_of
from training.tower import rate

_FRAMES = 72  # of all clips of a process
_OUTSIDE = 0.75  # of first looks that are at openings, not at films
# Kind of sample, whether without its pictures, samples a process, and how often.
MIX = (
    ("clip", False, 0, 0.24), ("verify", False, 10, 0.28), ("verify", True, 16, 0.02), ("look", False, 16, 0.10),
    ("first", False, 6, 0.08), ("first", True, 8, 0.14), ("next", False, 6, 0.02), ("next", True, 8, 0.10), ("review", True, 8, 0.02),
)  # fmt: skip
Both = tuple[Tensor | None, Tensor | None]


class Material:
    """Films and openings for training and tuning, with what the tower makes of their frames."""

    def __init__(self, footage: Path, stills: Path, features: Path) -> None:
        training, tuning = (
            load(footage, lambda key, known=known: known(key) and (features / f"{key}.1.npy").exists())  # type: ignore[misc]
            for known in (_is_training, lambda key: not _is_training(key))
        )
        self.films, self.judges, self.doors = Films(training), Films(tuning), Films(load_stills(stills, "opening"))
        self.features, self.seen = Features(features, training), Features(features, tuning)
        self.opened = OpeningFeatures(features)


def _is_training(key: str) -> bool:
    return int(key.split("-")[1]) >= 10_000


def drawn(films: Films, kind: str, text: bool, count: int, dice: np.random.Generator) -> list[Sample]:
    """Clips of about one length, as many as a batch has room for; of anything else so many."""
    if kind != "clip":
        return [SAMPLERS[kind](films, dice, text=text) for _ in range(count)]
    found = [clip(films, dice)]
    while sum(len(one.frames) for one in found) + len(found[0].frames) <= _FRAMES and len(found) < 12:
        one = clip(films, dice)
        if abs(len(one.frames) - len(found[0].frames)) <= 0.2 * len(found[0].frames):
            found.append(one)
    return found


def loss_of(model: Tiny, batch: Batch, both: Both, mark: int) -> tuple[Tensor, float]:
    """The loss, and a number that a person can follow: tokens right, or the mean error of progress."""
    hidden = model.decoder(batch.ids, batch.positions, *both)
    if len(batch.progress):
        return _progress_loss(model, hidden[batch.ids == mark], batch)
    counted = batch.weights[:, 1:] > 0
    logits, wanted, weight = (
        model.logits(hidden[:, :-1][counted]),
        batch.ids[:, 1:][counted],
        batch.weights[:, 1:][counted],
    )
    cross = (F.cross_entropy(logits, wanted, reduction="none") * weight).sum() / weight.sum()
    return cross, float((logits.argmax(-1) == wanted).float().mean())


def _progress_loss(model: Tiny, at: Tensor, batch: Batch) -> tuple[Tensor, float]:
    """Cross entropy with the two bins around the truth, the error itself, and whether the step is done."""
    logits, known = model.progress_head(at), batch.counts
    place = batch.progress.clamp(0, 1) * (BINS - 1)
    low = place.floor().long().clamp(max=BINS - 2)
    share = (place - low)[:, None]
    wanted = torch.zeros_like(logits).scatter_(1, low[:, None], 1 - share).scatter_(1, low[:, None] + 1, share)
    error = ((logits.softmax(-1) * torch.linspace(0, 1, BINS)).sum(-1) - batch.progress).abs()
    total = known.sum().clamp(min=1)
    cross = (F.cross_entropy(logits, wanted, reduction="none") * known).sum() / total
    done = (batch.progress >= 1).float()
    success = F.binary_cross_entropy_with_logits(model.success_head(at)[:, 0], done, weight=known, reduction="sum")
    mean = (error * known).sum() / total
    return cross + 2 * mean + 0.2 * success / total, float(mean.detach())


class Lesson:
    """One process of the crew: its model, its samples, and its place in the course."""

    def __init__(self, given: Any) -> None:
        self.given, self.crew = given, Crew(given.rank, given.crew, 29532)
        self.scribe = Scribe(given.tokenizer)
        self.material = Material(given.footage, given.stills, given.features)
        self._begin()
        self.live = Live(self.model, self.heads, self.material.films.films, given.rank) if given.live else None
        self.step = self._resume()
        self.choose = np.random.default_rng(5000 + self.step)
        self.dice = np.random.default_rng(1000 + self.step + given.rank)

    def _begin(self) -> None:
        torch.manual_seed(0)
        tokenizer = self.scribe.tokenizer
        self.model = Tiny(config(Size(), tokenizer.size, ids_of(tokenizer)))
        self.heads = DenseHeads(Size().tower, Size().hidden)
        if self.given.start:
            self._take(states_of(self.given.start))
        tower = states_of(self.given.tower)
        self.model.model.visual.load_state_dict(tower["visual"])
        self.heads.load_state_dict(tower["heads"], strict=False)
        live = self.given.live
        self.parameters = [one for name, one in self.model.named_parameters() if live or "visual" not in name]
        self.parameters += list(self.heads.parameters()) if live else []
        kept = {id(one) for one in self.parameters}
        for one in (*self.model.parameters(), *self.heads.parameters()):
            one.requires_grad_(id(one) in kept)
        decay = [
            {"params": [one for one in self.parameters if (one.ndim > 1) == wide], "weight_decay": 0.03 * wide}
            for wide in (True, False)
        ]
        self.optimizer = torch.optim.AdamW(decay, betas=(0.9, 0.97), fused=True)

    def _take(self, found: dict[str, Any]) -> None:
        self.model.load_state_dict(found["model"])
        self.heads.load_state_dict(found["heads"], strict=False)

    def _resume(self) -> int:
        if not self.given.out.exists():
            return 0
        found = torch.load(self.given.out, weights_only=True)
        self._take(found)
        self.optimizer.load_state_dict(found["optimizer"])
        return int(found["step"])

    def save(self) -> None:
        """Written beside and moved: a checkpoint is whole or not there."""
        states = {
            "model": self.model.state_dict(),
            "heads": self.heads.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }
        beside = self.given.out.with_suffix(".part")
        torch.save(states, beside)
        beside.rename(self.given.out)

    def take_step(self) -> tuple[str, float]:
        """One batch of one kind, the same kind in all processes."""
        chances = np.array([chance for *_, chance in MIX])
        kind, text, count, _ = MIX[self.choose.choice(len(MIX), p=chances / chances.sum())]
        outside = kind == "first" and self.choose.random() < _OUTSIDE
        films = self.material.doors if outside else self.material.films
        batch = made(drawn(films, kind, text, count, self.dice), self.scribe, self.model)
        both = self._features(batch, films, kind) if batch.frames else (None, None)
        loss, told = loss_of(self.model, batch, both, self.scribe.progress)
        if self.live is not None and batch.frames:
            loss = loss + 0.5 * self.live.loss
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.crew.average(self.parameters, 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.step, self.given.steps, self.given.rate, hold=self.given.hold)
        self.optimizer.step()
        self.step += 1
        return kind + " text" * text, told

    def _features(self, batch: Batch, films: Films, kind: str) -> Both:
        if self.live is not None:
            return self.live.of(batch.frames, self.dice, learn=kind != "clip", films=films.films)
        known = self.material.opened if films is self.material.doors else self.material.features
        return known.of(batch.frames, self.dice)

    def examine(self, count: int) -> dict[str, Any]:
        seen = self.material.seen if self.live is None else Fresh(self.model, self.material.judges.films)
        return examine(self.model, self.scribe, self.material.judges, seen, self.crew, count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("footage", "stills", "features", "tokenizer", "tower", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=7000)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--hold", type=float, default=0.35, help="the share of the steps at the full rate")
    parser.add_argument("--every", type=int, default=1000, help="steps from one examination to the next")
    parser.add_argument("--start", type=Path, help="a decoder to begin with: OUT.pt of another run, or a checkpoint")
    parser.add_argument("--live", action="store_true", help="train the tower too, on the pictures themselves")
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    if given.rank < 0:
        return launched("training.roles", sys.argv[1:], given.crew)
    lesson, began = Lesson(given), time.monotonic()
    means: dict[str, float] = {}
    log = given.out.with_suffix(".jsonl").open("a") if lesson.crew.leads else None
    while lesson.step < given.steps:
        name, told = lesson.take_step()
        means[name] = told if name not in means else 0.97 * means[name] + 0.03 * told
        last = lesson.step == given.steps
        due = last or lesson.step % given.every == 0
        found = lesson.examine(96 if last else 48) if due else {}
        if log is not None and (due or lesson.step % 100 == 0):
            train = {key: round(value, 4) for key, value in sorted(means.items())}
            line = {"step": lesson.step, "minutes": round((time.monotonic() - began) / 60, 1), "train": train, **found}
            print(json.dumps(line), file=log, flush=True)
            if due:
                print(json.dumps(line), flush=True)
        if due and lesson.crew.leads:
            lesson.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
