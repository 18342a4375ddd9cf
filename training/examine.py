"""An examination: how good the roles are on tuning seeds, writing freely, without the engine.

python -m training.examine FOOTAGE CHECKPOINT
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training.batch import Scribe, made
from training.checkpoint import states_of
from training.clips import clip
from training.crew import Crew
from training.features import Fresh
from training.films import Films, Sample
from training.footage import is_tuning, load
from training.growth import size_of
from training.model import Tiny, config
from training.samples import SAMPLERS
from training.tokenizer import ids_of

_LONGEST = {"verify": 150, "first": 420, "next": 90}


def examine(
    model: Tiny, scribe: Scribe, films: Films, features: Fresh, crew: Crew, count: int, *, clips: bool
) -> dict[str, Any]:
    """O and V, or P."""
    dice = np.random.default_rng(99 + crew.rank)
    marks: list[tuple[str, float]] = []
    with torch.no_grad():
        for kind in () if clips else ("verify", "first", "next"):
            wanted = count if kind == "verify" else count // 3
            samples = [SAMPLERS[kind](films, dice, text=False) for _ in range(wanted)]
            for sample, reply in zip(samples, replies(model, scribe, samples, features, _LONGEST[kind]), strict=True):
                marks += graded(kind, sample, reply)
        for _ in range(2 * count if clips else 0):
            sample = clip(films, dice)
            batch = made([sample], scribe, model)
            hidden = model.decoder(batch.ids, batch.positions, *features.of(batch.frames))
            curve = model.progress(hidden[batch.ids == scribe.progress]).numpy()
            if sample.case in ("right", "episode"):
                marks.append((f"clip {sample.case}", float(np.abs(curve - sample.progress).mean())))
                if sample.case == "right":
                    marks.append((f"clip {sample.about[0]}", float(np.abs(curve - sample.progress).mean())))
            elif sample.counts[-1]:
                marks.append((f"clip {sample.case}", float(curve[-1])))
    found: dict[str, list[float]] = {}
    for name, value in (mark for part in crew.gathered(marks) for mark in part):
        found.setdefault(name, []).append(value)
    return {name: [round(float(np.mean(values)), 4), len(values)] for name, values in sorted(found.items())}


def graded(kind: str, sample: Sample, reply: str) -> list[tuple[str, float]]:
    try:
        values = json.loads(reply)
        truth = json.loads(sample.reply)
    except ValueError:
        return [(f"{kind} readable", 0.0)]
    if not isinstance(values, dict) or values.keys() != truth.keys():
        return [(f"{kind} readable", 0.0)]
    found = [(f"{kind} readable", 1.0)]
    if kind == "verify":
        said, true = values["verdict"] == "done", truth["verdict"] == "done"
        found += [
            ("verify right", float(said == true)),
            ("verify false reject" if true else "verify false accept", float(said != true)),
        ]
        found += [(f"verify {sample.about[0]}", float(said == true)), (f"verify {sample.case}", float(said == true))]
        found += [(f"verify {name}", float(values[name] == truth[name])) for name in ("start", "during", "candidate")]
    elif kind == "first":
        same = [step.get("outcome") for step in values["plan"]] == [step["outcome"] for step in truth["plan"]]
        found += [("first objects", float(values["objects"] == truth["objects"])), ("first plan", float(same)),
                  ("first grounded", float(values["grounded"] == truth["grounded"]))]  # fmt: skip
    else:
        found.append(("next subtask", float(values["subtask"] == truth["subtask"])))
    return found


def replies(model: Tiny, scribe: Scribe, samples: Sequence[Sample], features: Fresh, most: int) -> list[str]:
    """Greedy, prompts of one length together."""
    prompts = [scribe.prompt(sample.question, pictures=True) for sample in samples if sample.question is not None]
    groups: dict[int, list[int]] = {}
    for at, prompt in enumerate(prompts):
        groups.setdefault(len(prompt), []).append(at)
    written = [""] * len(samples)
    for group in groups.values():
        shown = [frame for at in group for frame in samples[at].frames]
        rows = model.write([prompts[at] for at in group], *features.of(shown), most, scribe.end)
        for at, row in zip(group, rows, strict=True):
            written[at] = scribe.tokenizer.decode(row)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("footage", "checkpoint"):
        parser.add_argument(name, type=Path)
    parser.add_argument(
        "--count", type=int, default=160, help="questions to V; a third as many to O, twice as many clips"
    )
    given = parser.parse_args()
    scribe, crew = Scribe(given.checkpoint), Crew(0, 1, 0)
    films = Films(load(given.footage, is_tuning))
    for clips in (False, True):
        states = states_of(given.checkpoint, progress=clips)["model"]
        model = Tiny(config(size_of(states), scribe.tokenizer.size, ids_of(scribe.tokenizer))).eval()
        model.load_state_dict(states)
        found = examine(model, scribe, films, Fresh(model, films.films), crew, given.count, clips=clips)
        for name, (mean, count) in found.items():
            print(f"{name:24}{mean:8.3f}  n = {count}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
