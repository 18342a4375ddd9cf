"""The bundled episodes: there, small, one of each form, and what the simulator makes."""

from __future__ import annotations

from compass_edge.data.bundled import BUNDLED, EPISODES
from compass_edge.data.dataset import open_dataset
from compass_edge.data.episode import FORMS
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.metrics import measure
from compass_edge.eval.oracle import oracles


def test_one_of_each_form_in_two_megabytes() -> None:
    episodes = list(open_dataset("bundled").episodes())
    assert sorted(episode.id for episode in episodes) == sorted(f"{task}/{seed}" for task, seed in EPISODES)
    assert {episode.form for episode in episodes} == set(FORMS)
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) < 2_000_000
    for episode in episodes:
        assert episode.film.frames == episode.frames
        assert episode.completed == episode.size >= 3


def test_the_loop_with_oracles_follows_them() -> None:
    """The whole chain on real films: pictures, ticks, prompts, replies, events, curve."""
    episodes = list(open_dataset("bundled").episodes())
    for episode in episodes:
        scores = measure(run_loop(episode, oracles(episodes)), episode)
        assert scores.mae < 1
        assert scores.rho > 0.99


def test_the_simulator_still_makes_them() -> None:
    from compass_edge.sim.audit import audit
    from compass_edge.sim.catalogue import write

    for episode in open_dataset("bundled").episodes():
        assert audit(episode) == []
        task, _, seed = episode.id.partition("/")
        assert write(task, int(seed)).instruction == episode.instruction
