"""Trains the decoder of O and V together with the tower, or P's decoder alone.

    python -m training.roles FOOTAGE STILLS TOKENIZER START OUT.pt --minutes 60
    python -m training.roles FOOTAGE STILLS TOKENIZER START OUT.pt --grown --still --rate 3e-3 --minutes 5
    python -m training.roles FOOTAGE STILLS TOKENIZER START OUT.pt --course clips --still --tower ROLES.pt

START is what `tower` has saved, or a checkpoint to go on with; one whose decoder has fewer heads grows (training.growth). Stopped, the
same command goes on at its last checkpoint. OUT.jsonl is the log that the plot is drawn from.
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
from torch import Tensor

from training.batch import Scribe, made, pictures_of
from training.checkpoint import states_of, visual_of
from training.courses import COURSES
from training.crew import Crew, launched
from training.dense import DenseHeads
from training.drafts import DRAFTED, drafts
from training.examine import examine
from training.features import Fresh, Live
from training.films import Films, Sample
from training.growth import grown, new_parts, size_of
from training.guidance import loss_of_guide, loss_of_words
from training.losses import Both, loss_of
from training.material import Material, drawn
from training.model import Size, Tiny, config
from training.moments import MOMENTS, moments_of
from training.nearness import Nearness
from training.pointing import Pointing
from training.survey import any_frame
from training.tokenizer import ids_of
from training.tower import rate

_AGREE = 10  # steps from one look at the clock to the next
_DENSE = 2  # steps from one in which the tower learns, from its labels too, to the next; in a survey it always does
_TOWER_RATE = 0.3  # of the decoder's, except where it learns its labels alone: faster, it forgets what they taught it
# Of the decoder's: queries and keys have unit length, and how sharply one looks at another is this weight alone.
_SHARPNESS_RATE = 8.0
_LABELS = 4.0  # weight of the tower's labels: a mean over all classes, of which a patch has few
_POINTING = 0.5  # weight of which cells a sentence is about
_GUIDANCE = 1.0  # weight of where to look
_OUTSIDE = 0.5  # of first looks that are at openings, not at films


class Lesson:
    """One process of the crew: its model, its samples, and its place in the course."""

    def __init__(self, given: Any) -> None:
        self.given, self.crew = given, Crew(given.rank, given.crew, 29532)
        self.scribe = Scribe(given.tokenizer)
        self.material = Material(given.footage, given.stills, np.random.default_rng(given.rank))
        self._begin()
        self.live = Live(self.model, self.heads, self.material.films.films, given.rank)
        self.step, self.before = self._resume()
        self.began = time.monotonic()
        self.behind = 0.0
        self.looks: dict[str, float] = {}  # how far the last batch's looks were off, by what is looked at
        self.choose = np.random.default_rng(5000 + self.step)
        self.dice = np.random.default_rng(1000 + self.step + given.rank)
        self.chance = torch.Generator().manual_seed(given.rank)

    def _begin(self) -> None:
        torch.manual_seed(0)
        tokenizer = self.scribe.tokenizer
        start = states_of(self.given.start, progress=self.given.course == "clips")
        # P goes on with the heads that it has; O and V get those that are guided.
        size = size_of(start["model"]) if "model" in start and self.given.course == "clips" else Size()
        self.model = Tiny(config(size, tokenizer.size, ids_of(tokenizer)))
        self.heads = DenseHeads(Size().tower, Size().hidden)
        self.pointing, self.nearness = Pointing(Size().hidden), Nearness(Size().hidden)
        self._take(start | ({"model": grown(start["model"], size)} if "model" in start else {}))
        if self.given.tower is not None:
            seen = states_of(self.given.tower)
            self._take({"visual": visual_of(seen), "heads": seen["heads"]})
        self.mix = [one for one in COURSES[self.given.course] if one[0] != "dense" or not self.given.still]
        learning = (self.model, self.heads, self.pointing, *[self.nearness] * (self.given.course == "clips"))
        self.parameters = [one for part in learning for one in part.parameters()]
        if self.given.still:
            still = {id(one) for one in (*self.model.model.visual.parameters(), *self.heads.parameters())}
            self.parameters = [one for one in self.parameters if id(one) not in still]
        self.new: list[Tensor] = []
        if self.given.grown:
            new, named = new_parts(self.model, size_of(start["model"])), dict(self.model.named_parameters())
            self.parameters, self.new = [named[name] for name in new], list(new.values())
        self.optimizer = torch.optim.AdamW(self._groups(), betas=(0.9, 0.97), fused=True)

    def _groups(self) -> list[dict[str, Any]]:
        """Parameters by whether they decay, and by how fast they learn."""
        slow = {id(one) for one in (*self.model.model.visual.parameters(), *self.heads.parameters())}
        sharp = {id(one) for name, one in self.model.named_parameters() if "q_norm" in name or "k_norm" in name}
        found: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
        for one in self.parameters:
            share = _TOWER_RATE if id(one) in slow else _SHARPNESS_RATE if id(one) in sharp else 1.0
            decay = 0.03 * (one.ndim > 1 and not self.given.grown)
            found.setdefault((decay, share), []).append(one)
        return [{"params": some, "weight_decay": decay, "share": share} for (decay, share), some in found.items()]

    def _take(self, found: dict[str, Any]) -> None:
        """A tower alone, or all of it."""
        if "model" in found:
            self.model.load_state_dict(found["model"])
        else:
            self.model.model.visual.load_state_dict(found["visual"])
        self.heads.take(found["heads"])
        if "pointing" in found:
            self.pointing.load_state_dict(found["pointing"])
        if "nearness" in found:
            self.nearness.take(found["nearness"])

    @property
    def minutes(self) -> float:
        return self.before + (time.monotonic() - self.began) / 60

    def _resume(self) -> tuple[int, float]:
        if not self.given.out.exists():
            return 0, 0.0
        found = torch.load(self.given.out, weights_only=True)
        self._take(found)
        self.optimizer.load_state_dict(found["optimizer"])
        return int(found["step"]), float(found["minutes"])

    def save(self) -> None:
        """Written beside and moved: a checkpoint is whole or not there."""
        states = {
            "model": self.model.state_dict(),
            "heads": self.heads.state_dict(),
            "pointing": self.pointing.state_dict(),
            "nearness": self.nearness.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "minutes": self.minutes,
        }
        beside = self.given.out.with_suffix(".part")
        torch.save(states, beside)
        beside.rename(self.given.out)

    def take_step(self) -> tuple[str, float]:
        """One batch of one kind, the same kind in all processes."""
        if self.step % _AGREE == 0:  # the first process's clock is everyone's
            self.behind = min(self.crew.gathered(self.minutes / self.given.minutes)[0], 1.0)
        chances = np.array([first + (last - first) * self.behind for *_, first, last in self.mix])
        kind, text, count, *_ = self.mix[self.choose.choice(len(self.mix), p=chances / chances.sum())]
        outside = kind == "first" and self.choose.random() < _OUTSIDE
        films = self.material.doors if outside else self.material.films
        strange = kind == "first" and self.choose.random() < self.given.strange
        films = self.material.strangers if strange and self.material.strangers.films else films
        if text and kind in DRAFTED:
            films = drafts(self.dice, 2 * count, DRAFTED[kind])
        window = self.choose.random()
        if kind == "dense":
            loss, told = self._labels(count)
        else:
            loss, told = self._sampled(kind, films, drawn(films, kind, text, count, self.dice, window))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for one, new in zip(self.parameters, self.new, strict=False):
            if one.grad is not None:
                one.grad *= new
        self.crew.average(self.parameters, 1.0)
        for group in self.optimizer.param_groups:
            share = 1.0 if kind == "dense" and group["share"] == _TOWER_RATE else group["share"]
            group["lr"] = share * rate(self.step, self.behind, self.given.rate, hold=self.given.hold)
        self.optimizer.step()
        self.step += 1
        return kind + " text" * text, told

    def _labels(self, count: int) -> tuple[Tensor, float]:
        """The tower alone, on what its labels say."""
        films = self.material.films
        frames = []
        for _ in range(count):
            number, step = films.any_step(self.dice)
            telling = moments_of(films.films[number]) if self.dice.random() < MOMENTS else []
            at = films.place[number][any_frame(films, number, step, self.dice)]
            frames.append((number, telling[self.dice.integers(len(telling))] if telling else at))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.given.half):
            self.live.of(frames, self.dice, learn=True, films=films.films)
        return _LABELS * self.live.loss, float(self.live.loss.detach())

    def _sampled(self, kind: str, films: Films, samples: list[Sample]) -> tuple[Tensor, float]:
        batch = made(samples, self.scribe, self.model)
        both: Both = (None, None)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.given.half):
            if batch.frames:
                learn = not self.given.still and (kind == "survey" or self.step % _DENSE == 0)
                both = self.live.of(batch.frames, self.dice, learn=learn, films=films.films)
            loss, told = loss_of(self.model, self.nearness, batch, both, self.scribe.progress)
            if batch.frames:
                found = self.pointing.loss(self.model.midway, self.live.maps, batch.pointed)
                loss = loss + _LABELS * self.live.loss + _POINTING * found
            if kind != "clip":
                maps = self.live.maps if batch.frames else None
                pictures = pictures_of(batch, self.model.image)
                found = loss_of_guide(self.model.watched, batch.guide, batch.names, pictures, maps, self.chance)
                found |= loss_of_words(self.model, batch.guide, batch.ids)
                loss = loss + _GUIDANCE * sum(found.values(), torch.zeros(()))
                self.looks = {name: float(one.detach()) for name, one in found.items()}
        return loss, told

    def examine(self, count: int) -> dict[str, Any]:
        seen = Fresh(self.model, self.material.judges.films)
        return examine(
            self.model, self.scribe, self.material.judges, seen, self.crew, count, clips=self.given.course == "clips"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("footage", "stills", "tokenizer", "start", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--minutes", type=float, default=120.0, help="how long the course is")
    parser.add_argument("--rate", type=float, default=1.2e-3)
    parser.add_argument("--hold", type=float, default=0.35, help="the share of the course at the full rate")
    parser.add_argument("--half", action="store_true", help="multiply in bfloat16: faster where a CPU has it (README)")
    parser.add_argument(
        "--course", choices=COURSES, default="all", help="everything of O and V, words alone, mostly V, or P's clips"
    )
    parser.add_argument("--still", action="store_true", help="the tower stays as it is: it is everyone's")
    parser.add_argument("--grown", action="store_true", help="only the heads learn that START does not have yet")
    parser.add_argument("--tower", type=Path, help="whose tower is taken instead of START's")
    parser.add_argument("--strange", type=float, default=0.15, help="of first looks that are at other places")
    parser.add_argument("--every", type=int, default=1000, help="steps from one examination to the next; 0: none")
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    if given.rank < 0:
        return launched("training.roles", sys.argv[1:], given.crew)
    lesson = Lesson(given)
    means: dict[str, float] = {}
    log = given.out.with_suffix(".jsonl").open("a") if lesson.crew.leads else None
    while lesson.behind < 1:
        name, told = lesson.take_step()
        for key, value in {name: told, **{f"look {one}": off for one, off in lesson.looks.items()}}.items():
            means[key] = value if key not in means else 0.97 * means[key] + 0.03 * value
        last = lesson.behind == 1
        due = given.every > 0 and (last or lesson.step % given.every == 0)
        found = lesson.examine(96 if last else 48) if due else {}
        if log is not None and (due or lesson.step % 100 == 0):
            train = {key: round(value, 4) for key, value in sorted(means.items())}
            line = {"step": lesson.step, "minutes": round(lesson.minutes, 1), "train": train, **found}
            print(json.dumps(line), file=log, flush=True)
            if due:
                print(json.dumps(line), flush=True)
        if lesson.crew.leads and (last or due or lesson.step % 200 == 0):
            lesson.save()
    if log is not None:
        log.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
