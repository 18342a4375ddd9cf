"""Looks: how much of what the guided heads look at is what they should look at, and how often the word that follows is right.

    python -m training.looks FOOTAGE CHECKPOINT

Words are those of true replies: what came before is always right. Of drafts and recall, which are words alone, and of films of tuning
seeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from training.batch import Batch, Scribe, made, pictures_of
from training.checkpoint import states_of
from training.drafts import DRAFTED, drafts
from training.features import Fresh
from training.films import Films
from training.footage import is_tuning, load
from training.growth import size_of
from training.guidance import shares_of
from training.model import Tiny, config
from training.samples import SAMPLERS
from training.tokenizer import ids_of

_KINDS = (("recall", True), ("first", True), ("first", False), ("verify", False))


def right_words(model: Tiny, batch: Batch, hidden: torch.Tensor) -> dict[str, list[float]]:
    """Of words that are repeated and of words that are read: 1 if the model would say them."""
    found = {}
    for name, places in (
        ("repeated", batch.guide.repeats),
        ("read", [(row, at) for row, at, *_ in batch.guide.readings]),
    ):
        if places:
            row, at = torch.tensor(places).unbind(1)
            found[f"{name}, said"] = (
                (model.logits(hidden[row, at]).argmax(-1) == batch.ids[row, at + 1]).float().tolist()
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("footage", type=Path)
    parser.add_argument("checkpoint", type=Path, help="a folder, or what `roles` has saved")
    parser.add_argument("--tokenizer", type=Path, default=Path("training/compass-tiny"))
    parser.add_argument("--count", type=int, default=60, help="samples of each kind")
    given = parser.parse_args()
    scribe, states = Scribe(given.tokenizer), states_of(given.checkpoint)["model"]
    model = Tiny(config(size_of(states), scribe.tokenizer.size, ids_of(scribe.tokenizer))).eval()
    model.load_state_dict(states)
    films = Films(load(given.footage, is_tuning))
    features = Fresh(model, films.films)
    for kind, text in _KINDS:
        dice = np.random.default_rng(3)
        marks: dict[str, list[float]] = {}
        for _ in range(given.count):
            source = drafts(dice, 1, DRAFTED[kind]) if text and kind in DRAFTED else films
            batch = made([SAMPLERS[kind](source, dice, text=text)], scribe, model)
            with torch.no_grad():
                seen = features.of(batch.frames) if batch.frames else (None, None)
                hidden = model.decoder(batch.ids, batch.positions, *seen)
                maps = np.stack([films.films[film].maps[at] for film, at in batch.frames]) if batch.frames else None
                found = shares_of(model.watched, batch.guide, batch.names, pictures_of(batch, model.image), maps)
            for name, values in (found | right_words(model, batch, hidden)).items():
                marks.setdefault(name, []).extend(values)
        for name, values in marks.items():
            print(f"{kind + ', words alone' * text:22}{name:22}{np.mean(values):7.3f}  n = {len(values)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
