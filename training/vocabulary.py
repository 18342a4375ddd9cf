"""Makes the tokenizer of what the samples say.

python -m training.vocabulary FOOTAGE OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from training.clips import clip
from training.films import Films
from training.footage import load
from training.samples import SAMPLERS
from training.tokenizer import build, save
from training.wording import unrelated

_EACH = 1500


def main() -> int:
    footage, out = Path(sys.argv[1]), Path(sys.argv[2])
    films = Films(load(footage, lambda key: int(key.split("-")[1]) >= 10_000))
    dice = np.random.default_rng(0)
    samples = [sampler(films, dice, text=True) for sampler in SAMPLERS.values() for _ in range(_EACH)]
    sentences = [clip(films, dice).sentence for _ in range(_EACH)] + [unrelated(dice) for _ in range(_EACH // 5)]
    sentences += [film.script.instruction for film in films.films]
    questions = [sample.question for sample in samples if sample.question is not None]
    tokenizer = build(questions, [sample.reply for sample in samples], sentences)
    save(tokenizer, out)
    print(f"{tokenizer.get_vocab_size()} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
