"""Samples: the loop's own questions about filmed episodes, with the replies that the simulator's state makes true.

Every prompt is built by compass_edge.roles and compass_edge.prms, word by word as the loop builds it.
"""

from __future__ import annotations

from collections.abc import Callable

from training.films import Dice, Films, Sample
from training.orienter_samples import first_look, look, next_step, review
from training.recall import recall
from training.survey import survey, surveys
from training.verifier_samples import verify, verify_twice

# By kind; each takes films, dice and whether it goes without pictures.
SAMPLERS: dict[str, Callable[..., Sample]] = {
    "first": first_look,
    "look": look,
    "recall": lambda films, dice, *, text: recall(dice),
    "next": next_step,
    "review": review,
    "survey": survey,
    "verify": verify,
}


def family(films: Films, kind: str, dice: Dice, *, text: bool) -> list[Sample]:
    """Samples of the same frames, which the tower looks at once: a model that is asked twice has to read what it is asked."""
    if kind == "verify" and not text:
        return verify_twice(films, dice)
    if kind == "survey":
        return surveys(films, dice)
    return [SAMPLERS[kind](films, dice, text=text)]
