"""Curves: what P says of every step of the tuning films, tick by tick, and at which score a step shows itself.

    python -m training.curves FILMS TOKENIZER CHECKPOINT OUT.jsonl
    compass-edge calibrate OUT.jsonl                  # the thresholds of the candidate rule

What it prints are the aims of the middle rule (compass_edge/loop/middle.py): of each kind of completion the score, among all, at
which the frame that the rule would choose is most often one that shows the step being carried out.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from compass_edge.loop.middle import MiddleRule, off
from compass_edge.loop.plan import Completion
from training.batch import Scribe, made
from training.checkpoint import states_of
from training.features import Fresh
from training.films import Films, Sample, tick_at
from training.footage import EVERY, is_tuning, load
from training.growth import size_of
from training.judgement import rest_of
from training.memory import evidence
from training.model import Tiny, config
from training.tokenizer import ids_of

_BEYOND = 10  # ticks behind a step's end, in which P is still asked about it
_AIMS = np.linspace(0.3, 1.0, 29)


@dataclass(frozen=True, slots=True)
class StepCurve:
    name: str
    completion: Completion
    scores: NDArray[np.float64]
    done_at: int
    shows: frozenset[int]  # ticks at which the step can be seen being carried out


def step_curves(model: Tiny, scribe: Scribe, films: Films) -> list[StepCurve]:
    seen, found = Fresh(model, films.films), []
    for number, step in films.steps:
        film, stage = films.films[number], films.stages[number]
        part, begin, end = stage.part(step), tick_at(films.begin(number, step)), film.ends[step]
        ticks = films.ticks(number, begin, min(tick_at(end) + _BEYOND * EVERY, len(film.shots) - 1))
        if tick_at(end) not in ticks:
            continue
        sentence = part.deed.subtask().sentence
        sample = Sample(None, [(number, films.place[number][tick]) for tick in ticks], sentence=sentence)
        batch = made([sample], scribe, model)
        with torch.no_grad():
            hidden = model.decoder(batch.ids, batch.positions, *seen.of(batch.frames))
            scores = model.progress(hidden[batch.ids == scribe.progress]).double().clamp(0, 1).numpy()
        showing = evidence(stage, part, film, begin, end, rest_of(part, film.shots, begin))
        shows = frozenset(at for at, tick in enumerate(ticks) if tick in showing)
        found.append(
            StepCurve(f"{film.key} step {step + 1}", part.deed.completion, scores, ticks.index(tick_at(end)), shows)
        )
    return found


def aim_of(curves: list[StepCurve]) -> tuple[float, float]:
    """The best aim, and how often its frame shows the step when the candidate is the tick at which it is done."""

    def hits(aim: float) -> float:
        chosen = [
            _nearest(curve.scores[1 : curve.done_at], aim) + 1 in curve.shows for curve in curves if curve.done_at > 1
        ]
        return float(np.mean(chosen)) if chosen else 0.0

    marks = [hits(float(aim)) for aim in _AIMS]
    best = [at for at, mark in enumerate(marks) if mark >= max(marks) - 1e-9]
    return round(float(_AIMS[best[len(best) // 2]]), 3), max(marks)


def _nearest(scores: NDArray[np.float64], aim: float) -> int:
    """As the middle rule has it."""
    return min(range(len(scores)), key=lambda at: (off(float(scores[at]), aim), -at))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("footage", "tokenizer", "checkpoint", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    scribe = Scribe(given.tokenizer)
    states = states_of(given.checkpoint, progress=True)["model"]
    model = Tiny(config(size_of(states), scribe.tokenizer.size, ids_of(scribe.tokenizer))).eval()
    model.load_state_dict(states)
    curves = step_curves(model, scribe, Films(load(given.footage, is_tuning)))
    with given.out.open("w") as file:
        for curve in curves:
            scores = [round(float(score), 4) for score in curve.scores]
            file.write(json.dumps({"scores": scores, "done_at": curve.done_at, "name": curve.name}) + "\n")
    aims = {}
    for completion in ("lasting", "brief", "observation"):
        some = [curve for curve in curves if curve.completion == completion]
        aims[completion], share = aim_of(some)
        print(f"{completion}: of {len(some)} steps {share:.0%} show themselves at {aims[completion]}", flush=True)
    print(json.dumps({"middle": aims}))
    MiddleRule.from_dict(aims)
    return 0


if __name__ == "__main__":
    sys.exit(main())
