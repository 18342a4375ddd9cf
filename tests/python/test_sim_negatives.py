"""Negatives: the instruction changes, the truth follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from compass_edge.data.episode import Episode, StepTruth
from compass_edge.sim.catalogue import write
from compass_edge.sim.negatives import NEGATIVES, SEED, judge_negative, negative_fields


class Film:
    key, frames = "film", 1000


def made(name: str) -> Episode:
    negative = NEGATIVES[name]
    script = write(negative.base, SEED)
    steps = [
        {"sentence": step.sentence, "end": 10 * (index + 1), "facts": dict(step.facts)}
        for index, step in enumerate(script.steps)
    ]
    frames = 10 * len(steps) + 20
    base = {"instruction": script.instruction, "frames": frames, "steps": steps, "tracks": {"path": [0.5] * frames},
            "form": script.form}  # fmt: skip
    fields = negative_fields(negative, base, "../film.mp4")
    truth = tuple(StepTruth(step["sentence"], step["end"], facts=step["facts"]) for step in fields["steps"])
    return Episode(fields["id"], fields["task"], fields["instruction"], Film(), fields["frames"], 10.0, truth,
                   fields["form"], fields["kind"], fields["tracks"])  # type: ignore[arg-type]  # fmt: skip


def test_five_of_each_kind() -> None:
    assert Counter(negative.kind for negative in NEGATIVES.values()) == {
        "early_stop": 5,
        "extra_steps": 5,
        "mismatch": 5,
    }


@pytest.mark.parametrize("name", NEGATIVES)
def test_the_truth_ends_where_it_should(name: str) -> None:
    negative, episode = NEGATIVES[name], made(name)
    assert episode.progress()[-1] == pytest.approx(negative.ends_at, abs=0.01)
    same = episode.instruction == write(negative.base, SEED).instruction
    assert same == (negative.kind == "early_stop")
    if negative.kind == "extra_steps":
        assert episode.progress()[episode.truth[-1].end :].tolist() == [100.0] * (
            episode.frames - episode.truth[-1].end
        )
        assert episode.local("path")[episode.truth[-1].end :].sum() == 0
    if negative.kind == "mismatch":
        assert not episode.progress().any()
        assert not episode.progress("path").any()


def test_extra_steps_count_what_is_asked_for() -> None:
    presses = made("X1")
    assert "5 times" in presses.instruction
    assert presses.size == presses.truth[1].facts["of"] == 5
    assert "number 2 of 5" in presses.truth[1].sentence
    assert "of 8" not in " ".join(step.sentence for step in presses.truth)
    assert "of 3" in made("X3").truth[0].sentence
    assert "once each" in made("X4").instruction
    assert made("X3").instruction.count(",") == 2
    assert "unstack" not in made("X5").instruction
    assert "leftmost" in made("X2").instruction
    assert "each" not in made("X2").instruction


@pytest.mark.parametrize("name", NEGATIVES)
def test_a_wrong_target_is_found(name: str) -> None:
    episode = made(name)
    assert judge_negative(episode) == []
    assert "must be of the kind" in judge_negative(replace(episode, kind="positive"))[0]
    if episode.truth:
        longer = replace(episode, steps=(*episode.truth, StepTruth("more", 5000)))
        assert "ends at" in judge_negative(longer)[0]
    else:
        begun = replace(episode, steps=(StepTruth("something", 5),))
        assert "ends at 100.00, and 0.00 is true" in judge_negative(begun)[0]
