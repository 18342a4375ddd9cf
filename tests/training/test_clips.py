"""Clips under sentences that they do not show: what P is taught of them, and what it is not."""

from __future__ import annotations

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from performed import played

from training.clips import clips
from training.films import Films, tick_at


def test_the_way_back_has_not_come_far_when_the_way_there_is_done() -> None:
    """At its start the way back's outcome is there already, and then it is undone: at its end, and only there, it is known to be at 0.
    Behind its end it is the way back itself that is shown."""
    films, dice = Films([played("R3")]), np.random.default_rng(0)
    film = films.films[0]
    ends, known = [tick_at(end) for end in film.ends], 0
    for _ in range(60):
        for one in clips(films, dice):
            if one.case == "other step":
                assert (one.progress == 0).all()
                frames = [film.frames[at] for _, at in one.frames]
                told = [frame for frame, count in zip(frames[1:], one.counts[1:], strict=True) if count]
                assert all(frame in ends or frame > ends[-1] for frame in told)
                known += len(told)
    assert known > 10
