"""Trains the decoder in all three roles on the features of a finished tower.

    python -m training.roles FOOTAGE FEATURES TOKENIZER TOWER.pt OUT.pt --steps 8000

Stopped, the same command goes on at its last checkpoint. OUT.jsonl is the log that the plot is drawn from.
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
from training.crew import Crew, launched
from training.examine import examine
from training.features import Features
from training.footage import load
from training.model import BINS, Size, Tiny, config
from training.samples import SAMPLERS, Films, Sample, clip
from training.tower import rate

# Kind of sample, whether without its pictures, samples a process, and how often.
MIX = (
    ("clip", False, 3, 0.36), ("verify", False, 10, 0.26), ("verify", True, 16, 0.08), ("first", False, 6, 0.08),
    ("first", True, 8, 0.08), ("next", False, 6, 0.03), ("next", True, 8, 0.08), ("review", True, 8, 0.03),
)  # fmt: skip


def drawn(films: Films, kind: str, text: bool, count: int, dice: np.random.Generator) -> list[Sample]:
    if kind != "clip":
        return [SAMPLERS[kind](films, dice, text=text) for _ in range(count)]
    found = [clip(films, dice)]
    while sum(len(one.frames) for one in found) + len(found[0].frames) <= 36 * count and len(found) < 12:
        one = clip(films, dice)
        if abs(len(one.frames) - len(found[0].frames)) <= 0.2 * len(found[0].frames):
            found.append(one)
    return found


def loss_of(model: Tiny, batch: Batch, features: Tensor | None, taps: Tensor | None, mark: int) -> tuple[Tensor, float]:
    """The loss, and a number that a person can follow: tokens right, or the mean error of progress."""
    hidden = model.decoder(batch.ids, batch.positions, features, taps)
    if len(batch.progress):
        at = hidden[batch.ids == mark]
        logits, known = model.progress_head(at), batch.counts
        place = batch.progress.clamp(0, 1) * (BINS - 1)
        low = place.floor().long().clamp(max=BINS - 2)
        share = (place - low)[:, None]
        wanted = torch.zeros_like(logits).scatter_(1, low[:, None], 1 - share).scatter_(1, low[:, None] + 1, share)
        error = ((logits.softmax(-1) * torch.linspace(0, 1, BINS)).sum(-1) - batch.progress).abs()
        total = known.sum().clamp(min=1)
        cross = (F.cross_entropy(logits, wanted, reduction="none") * known).sum() / total
        success = F.binary_cross_entropy_with_logits(
            model.success_head(at)[:, 0], (batch.progress >= 1).float(), weight=known, reduction="sum"
        )
        mean = (error * known).sum() / total
        return cross + 2 * mean + 0.2 * success / total, float(mean)
    counted = batch.weights[:, 1:] > 0
    logits, wanted, weight = model.logits(hidden[:, :-1][counted]), batch.ids[:, 1:][counted], batch.weights[:, 1:][counted]
    cross = (F.cross_entropy(logits, wanted, reduction="none") * weight).sum() / weight.sum()
    return cross, float((logits.argmax(-1) == wanted).float().mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("footage", "features", "tokenizer", "tower", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--every", type=int, default=1000, help="steps from one examination to the next")
    parser.add_argument("--start", type=Path, help="weights to begin with")
    parser.add_argument("--hold", type=float, default=0.35)
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    if given.rank < 0:
        return launched("training.roles", sys.argv[1:], given.crew)
    crew = Crew(given.rank, given.crew, 29532)
    scribe = Scribe(given.tokenizer)
    model, parameters, optimizer = begun(given, scribe)
    training = load(given.footage, lambda key: int(key.split("-")[1]) >= 10_000 and (given.features / f"{key}.1.npy").exists())
    tuning = load(given.footage, lambda key: int(key.split("-")[1]) < 10_000 and (given.features / f"{key}.1.npy").exists())
    films, judges = Films(training), Films(tuning)
    features, seen = Features(given.features, training), Features(given.features, tuning)
    first = resumed(given.out, model, optimizer)
    log = given.out.with_suffix(".jsonl").open("a") if crew.leads else None
    if crew.leads:
        print(len(training), "films", len(films.steps), "steps filmed", sum(one.numel() for one in model.parameters()), "parameters", flush=True)
    choose, dice = np.random.default_rng(5000 + first), np.random.default_rng(1000 + first + given.rank)
    chances = np.array([chance for *_, chance in MIX])
    began, means = time.monotonic(), dict[str, float]()
    for step in range(first, given.steps):
        kind, text, count, _ = MIX[choose.choice(len(MIX), p=chances / chances.sum())]
        batch = made(drawn(films, kind, text, count, dice), scribe, model)
        both = features.of(batch.frames, dice) if batch.frames else (None, None)
        loss, told = loss_of(model, batch, *both, scribe.progress)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        crew.average(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, given.steps, given.rate, hold=given.hold)
        optimizer.step()
        name = kind + " text" * text
        means[name] = told if name not in means else 0.97 * means[name] + 0.03 * told
        last = step + 1 == given.steps
        if (step + 1) % given.every == 0 or last:
            found = examine(model, scribe, judges, seen, crew, 96 if last else 48)
            if log is not None:
                line = {"step": step + 1, "minutes": round((time.monotonic() - began) / 60, 1),
                        "train": {key: round(value, 4) for key, value in means.items()}, **found}  # fmt: skip
                print(json.dumps(line), file=log, flush=True)
                print(json.dumps(line), flush=True)
                saved(given.out, model, optimizer, step + 1)
        elif log is not None and (step + 1) % 100 == 0:
            line = {"step": step + 1, "minutes": round((time.monotonic() - began) / 60, 1), "train": {key: round(value, 4) for key, value in means.items()}}
            print(json.dumps(line), file=log, flush=True)
    return 0


def begun(given: Any, scribe: Scribe) -> tuple[Tiny, list[Tensor], torch.optim.Optimizer]:
    from training.tokenizer import ids_of

    torch.manual_seed(0)
    model = Tiny(config(Size(), scribe.tokenizer.size, ids_of(scribe.tokenizer)))
    if given.start:
        model.load_state_dict(torch.load(given.start, weights_only=True)["model"])
    model.model.visual.load_state_dict(torch.load(given.tower, weights_only=True)["visual"])
    parameters = [one for name, one in model.named_parameters() if "visual" not in name]
    for one in model.model.visual.parameters():
        one.requires_grad_(False)
    groups = [{"params": [one for one in parameters if one.ndim > 1], "weight_decay": 0.03},
              {"params": [one for one in parameters if one.ndim <= 1], "weight_decay": 0.0}]  # fmt: skip
    return model, parameters, torch.optim.AdamW(groups, betas=(0.9, 0.97), fused=True)


def saved(path: Path, model: Tiny, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Written beside and moved: a checkpoint is whole or not there."""
    beside = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, beside)
    beside.rename(path)


def resumed(path: Path, model: Tiny, optimizer: torch.optim.Optimizer) -> int:
    if not path.exists():
        return 0
    found = torch.load(path, weights_only=True)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    return int(found["step"])


if __name__ == "__main__":
    sys.exit(main())
