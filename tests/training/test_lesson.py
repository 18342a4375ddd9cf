"""A course from its command to its checkpoint, on two films: what learns, what stays as it is, and that it goes on where it stopped."""

from __future__ import annotations

import json
import pickle
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

for needed in ("torch", "transformers", "mujoco", "matplotlib"):
    pytest.importorskip(needed)

import torch

from compass_edge.sim.gl import choose_gl
from training import examine, plot, roles
from training.checkpoint import states_of
from training.courses import COURSES
from training.films import Films
from training.footage import film
from training.model import HEAD
from training.roles import Lesson
from training.stills import openings

CHECKPOINT = Path(__file__).parents[2] / "training" / "compass-tiny"
TOWER = "model.visual."


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films for training, one for examinations, and one opening."""
    choose_gl()
    folder = tmp_path_factory.mktemp("work")
    (folder / "films").mkdir()
    (folder / "stills").mkdir()
    for task, seed in (("R3", 10_000), ("Q1", 10_001), ("R3", 1000)):
        assert film(task, seed, folder / "films")
    with (folder / "stills" / "S7-20000.opening").open("wb") as file:
        pickle.dump(openings("S7", 20_000), file)
    return folder


def given(work: Path, out: Path, **options: Any) -> Namespace:
    plain = {
        "minutes": 1e6,
        "rate": 1e-3,
        "hold": 0.4,
        "half": False,
        "course": "all",
        "still": False,
        "grown": False,
        "tower": None,
        "strange": 0.15,
        "every": 0,
    }
    paths = {
        "footage": work / "films",
        "stills": work / "stills",
        "tokenizer": CHECKPOINT,
        "start": CHECKPOINT,
        "out": out,
    }
    return Namespace(**plain | paths | {"crew": 1, "rank": 0} | options)


def parts(lesson: Lesson) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Copies of the tower and of everything else."""
    states = {name: value.clone() for name, value in lesson.model.state_dict().items()}
    tower = {name: value for name, value in states.items() if name.startswith(TOWER)}
    return tower, {name: value for name, value in states.items() if name not in tower}


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize("kind", sorted({(kind, text) for kind, text, *_ in COURSES["all"]}))
def test_every_kind_of_sample_is_learned(work: Path, tmp_path: Path, kind: tuple[str, bool]) -> None:
    lesson = Lesson(given(work, tmp_path / "out.pt"))
    lesson.mix = [(one, text, min(count, 3), 1.0, 1.0) for one, text, count, *_ in lesson.mix if (one, text) == kind]
    tower, rest = parts(lesson)
    name, told = lesson.take_step()
    assert name == kind[0] + " text" * kind[1]
    assert 0 <= told <= 1 or kind[0] == "dense"
    assert changed(*((tower, parts(lesson)[0]) if kind[0] == "dense" else (rest, parts(lesson)[1])))


@pytest.mark.parametrize("strange", [0.0, 1.0])
def test_first_looks_are_at_other_places_as_often_as_it_is_said(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strange: float
) -> None:
    lesson = Lesson(given(work, tmp_path / "out.pt", strange=strange))
    lesson.mix = [("first", False, 2, 1.0, 1.0)]
    lesson.material.strangers = Films(lesson.material.doors.films)
    looked: list[Films] = []
    drawn = roles.drawn
    monkeypatch.setattr(roles, "drawn", lambda films, *rest: looked.append(films) or drawn(films, *rest))
    for _ in range(3):
        lesson.take_step()
    assert [films is lesson.material.strangers for films in looked] == [strange == 1.0] * 3


def test_the_tower_of_clips_stays_as_it_is(work: Path, tmp_path: Path) -> None:
    lesson = Lesson(given(work, tmp_path / "out.pt", course="clips", still=True, tower=CHECKPOINT))
    tower, rest = parts(lesson)
    name, told = lesson.take_step()
    assert name == "clip"
    assert 0 <= told <= 1
    assert not changed(tower, parts(lesson)[0])
    assert changed(rest, parts(lesson)[1])


def test_a_stopped_course_goes_on(work: Path, tmp_path: Path) -> None:
    first = Lesson(given(work, tmp_path / "out.pt", course="words"))
    first.take_step()
    first.save()
    second = Lesson(given(work, tmp_path / "out.pt", course="words"))
    assert second.step == 1
    assert not any(changed(*both) for both in zip(parts(first), parts(second), strict=True))


def test_the_commands(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A course of a second, its curves, and an examination."""
    out = tmp_path / "out.pt"
    where = [work / "films", work / "stills", CHECKPOINT, CHECKPOINT, out]
    options = ["--course", "words", "--minutes", 0.01, "--every", 0, "--crew", 1, "--rank", 0]
    monkeypatch.setattr(sys, "argv", ["roles", *map(str, where), *map(str, options)])
    assert roles.main() == 0
    assert torch.load(out, weights_only=True)["step"] >= 1
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(
            json.dumps({"minutes": at, "train": {"clip": 0.3 / at, "verify": 1 - 0.1 / at}}) + "\n" for at in (1, 2)
        )
    )
    monkeypatch.setattr(sys, "argv", ["plot", str(log), str(tmp_path / "curves.png")])
    assert plot.main() == 0
    assert (tmp_path / "curves.png").stat().st_size > 5000
    monkeypatch.setattr(sys, "argv", ["examine", str(work / "films"), str(CHECKPOINT), "--count", "3"])
    assert examine.main() == 0
    told = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert {"verify", "first", "clip"} <= told


def test_new_heads_learn_alone(work: Path, tmp_path: Path) -> None:
    """From a decoder without them: what was there stays as it is, to the last bit."""
    small = states_of(CHECKPOINT)["model"]
    for name, value in small.items():
        part = name.split(".")[-2]
        if "language_model" in name and part in ("q_proj", "k_proj", "v_proj"):
            small[name] = value[: (6 if part == "q_proj" else 2) * HEAD]
        elif "language_model" in name and part == "o_proj":
            small[name] = value[:, : 6 * HEAD]
    torch.save(states_of(CHECKPOINT) | {"model": small}, tmp_path / "small.pt")
    lesson = Lesson(given(work, tmp_path / "out.pt", course="words", grown=True, start=tmp_path / "small.pt"))
    _, before = parts(lesson)
    for _ in range(2):  # values learn nothing before the output has
        assert lesson.take_step()[0].endswith("text")
    _, after = parts(lesson)
    learned = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name.split(".")[-2] for name in learned} == {"q_proj", "k_proj", "v_proj", "o_proj"}
    for name in learned:
        old = small[name]
        assert torch.equal(after[name][: old.shape[0], : old.shape[1]], old), name
