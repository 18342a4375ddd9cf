"""Samples: the loop's own questions about filmed episodes, with the replies that the simulator's state makes true.

Every prompt is built by compass_edge.roles and compass_edge.prms, word by word as the loop builds it.
"""

from __future__ import annotations

from collections.abc import Callable

from training.films import Sample
from training.orienter_samples import first_look, look, next_step, review
from training.survey import survey
from training.verifier_samples import verify

# By kind; each takes films, dice and whether it goes without pictures.
SAMPLERS: dict[str, Callable[..., Sample]] = {
    "first": first_look,
    "look": look,
    "next": next_step,
    "review": review,
    "survey": survey,
    "verify": verify,
}
