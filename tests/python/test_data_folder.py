"""Our own format: what is written is read again, and whatever is wrong is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_samples import numbers_shown, shoot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compass_edge.data.episode import FORMS, Episode, StepTruth
from compass_edge.data.folder import COMPLETIONS, KINDS, FolderDataset, read_episode, write_episode_json
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import IntegrityError, UsageError

FIELDS: dict[str, Any] = {
    "id": "R1/3",
    "task": "R1",
    "instruction": "Press the button twice.",
    "fps": 10,
    "frames": 37,
    "form": "recurrence",
    "steps": [
        {"sentence": "Press it for the first time.", "end": 12, "forms": ["recurrence"], "facts": {"pressed": 0}},
        {"sentence": "Press it for the second time.", "end": 30, "completion": "brief", "tau": "down and up"},
    ],
    "tracks": {"path": np.linspace(0, 1, 37), "held": [None] * 37},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shoot(tmp_path / "R1" / "3.mp4")
    write_episode_json(tmp_path / "R1" / "3.json", FIELDS)
    return tmp_path


def test_an_episode_comes_back_as_it_was_written(root: Path) -> None:
    episode = read_episode(root / "R1" / "3.json")
    assert (episode.id, episode.task, episode.form, episode.kind, episode.frames) == (
        "R1/3",
        "R1",
        "recurrence",
        "positive",
        37,
    )
    assert [step.end for step in episode.truth] == [12, 30]
    assert episode.truth[0].forms == ("recurrence",)
    assert episode.truth[0].facts == {"pressed": 0}
    assert episode.truth[1].completion == "brief"
    assert np.allclose(episode.local("path"), np.linspace(0, 1, 37))
    assert list(episode.progress()[[0, 6, 12, 30, 36]]) == [0, 25, 50, 100, 100]
    assert numbers_shown(episode.film, 12) == [(0, 0), (12, 12), (24, 24), (36, 36)]


def test_an_early_stop_shares_another_episodes_film(root: Path) -> None:
    stop = {**FIELDS, "id": "stop", "kind": "early_stop", "frames": 20, "video": "../R1/3.mp4", "crop": [0, 0, 80, 96]}
    write_episode_json(root / "negatives" / "stop.json", stop)
    both = {episode.id: episode for episode in FolderDataset(root).episodes()}
    assert len(FolderDataset(root)) == 2
    assert both["stop"].completed == 1
    assert both["stop"].size == 2
    assert next(both["stop"].film.pictures())[1].shape == (96, 80, 3)
    assert both["stop"].film.key.startswith(both["R1/3"].film.key)
    with pytest.raises(IntegrityError, match="leaves it"):
        read_episode(root / "negatives" / "stop.json")
    assert read_episode(root / "negatives" / "stop.json", root).id == "stop"


def test_an_episode_object_is_written_too(root: Path) -> None:
    episode = read_episode(root / "R1" / "3.json")
    cropped = replace(episode, id="cropped", film=VideoFilm(episode.film.path, (2, 4, 8, 8)))  # type: ignore[attr-defined]
    write_episode_json(root / "other" / "x.json", cropped)
    again = read_episode(root / "other" / "x.json", root)
    assert again.film.key == cropped.film.key
    assert again.steps == cropped.steps
    assert again.tracks == cropped.tracks
    unannotated = replace(episode, steps=None)
    write_episode_json(root / "R1" / "3.json", unannotated)
    assert read_episode(root / "R1" / "3.json").steps is None
    with pytest.raises(UsageError, match="FilmWriter"):
        write_episode_json(
            root / "y.json",
            replace(episode, film=VideoFilm(episode.film.path, start_s=1.0, frames=37)),  # type: ignore[attr-defined]
        )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other/1"}, "format must be 'compass-edge-episode/1', and 'other/1' came"),
        ({"frames": 38, "tracks": {}}, "between 1 and 37 frames"),
        ({"frames": 0}, "frames must be a whole number of at least 1, and 0 came"),
        ({"frames": -3}, "frames must be a whole number"),
        ({"frames": True}, "frames must be a whole number"),
        ({"frames": "37"}, "frames must be a whole number"),
        ({"fps": 0}, "fps must be a number above 0"),
        ({"fps": None}, "fps must be a number above 0, and None came"),
        ({"id": "  "}, "id must be a text that is not empty"),
        ({"kind": "negative"}, "kind must be one of positive"),
        ({"form": "mix"}, "form must be one of state"),
        ({"steps": {}}, "steps must be a list"),
        ({"steps": [3]}, r"steps\[0\] must be a JSON object, and a number came"),
        ({"steps": [{"sentence": "x"}]}, r"steps\[0\]: the key 'end' is missing"),
        (
            {"steps": [{"sentence": "x", "end": -4}]},
            r"steps\[0\]: end must be a whole number of at least 1, and -4 came",
        ),
        ({"steps": [{"sentence": "x", "end": 0}]}, "end must be a whole number of at least 1"),
        ({"steps": [{"sentence": "x", "end": 5, "forms": ["mix"]}]}, "forms must be among state"),
        ({"steps": [{"sentence": "x", "end": 5, "ends": 6}]}, "there is no key 'ends'"),
        ({"steps": [{"sentence": "x", "end": 9}, {"sentence": "y", "end": 9}]}, "one after the other"),
        ({"instuction": "x"}, "there is no key 'instuction'"),
        ({"tracks": {"path": [0.5]}}, "the track 'path' must have a value for each of 37 frames, and 1 came"),
        ({"tracks": [1]}, "tracks must be a JSON object"),
        ({"crop": [0, 0, 8]}, r"crop must be \[left, top, width, height\]"),
        ({"crop": [0, 0, 8, 0.5]}, "crop must be"),
        ({"crop": [0, 0, 900, 9]}, "leaves the 160x96 picture"),
        ({"video": "../../x.mp4"}, "leaves it"),
        ({"video": "/etc/passwd"}, "leaves it"),
        ({"video": "gone.mp4"}, r"gone\.mp4' cannot be read"),
        ({"video": 7}, "video must be a text"),
    ],
)
def test_what_is_wrong_is_named(root: Path, change: dict[str, Any], says: str) -> None:
    path = root / "R1" / "3.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(IntegrityError, match=says) as raised:
        read_episode(path, root)
    assert "3.json" in str(raised.value) or "mp4" in str(raised.value)
    assert raised.value.exit_code == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ('{"format": "compass', "cannot be read"),
        ("[]", "must be a JSON object, and a list came"),
        ("null", "must be a JSON object, and a null came"),
        ('{"a": 1}', "there is no key 'a'"),
        ("{}", "the key 'format' is missing"),
        ('{"fps": NaN}', "NaN is no JSON number"),
        ("\udcff", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_json_of_another_kind_beside_a_film_is_an_error(root: Path, text: str, says: str) -> None:
    (root / "R1" / "3.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(IntegrityError, match=says):
        list(FolderDataset(root).episodes())


def test_json_without_a_film_is_left_alone(root: Path) -> None:
    (root / "report.json").write_text('{"mae": 3}')
    (root / ".3.json.part").write_text("{")
    assert [episode.id for episode in FolderDataset(root).episodes()] == ["R1/3"]


def test_two_episodes_of_one_id(root: Path) -> None:
    write_episode_json(root / "R2" / "3.json", {**FIELDS, "video": "../R1/3.mp4"})
    with pytest.raises(IntegrityError, match="both call themselves 'R1/3'"):
        list(FolderDataset(root).episodes())


@pytest.mark.parametrize(
    "change", [{"frames": -1}, {"fps": float("nan")}, {"tracks": {"path": [float("inf")] * 37}}, {"about": {"x": {1}}}]
)
def test_a_wrong_episode_is_not_written(root: Path, change: dict[str, Any]) -> None:
    path = root / "R1" / "3.json"
    before = path.read_bytes()
    with pytest.raises(UsageError, match="cannot be written"):
        write_episode_json(path, {**FIELDS, **change})
    assert path.read_bytes() == before
    assert not list(root.rglob("*.part"))


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_steps = st.lists(
    st.builds(
        StepTruth,
        sentence=_text,
        end=st.integers(1, 12),
        forms=st.lists(st.sampled_from(FORMS), unique=True).map(tuple),
        tau=_text,
        completion=st.sampled_from(COMPLETIONS),  # type: ignore[arg-type]
        facts=st.dictionaries(_text, st.integers() | _text | st.none(), max_size=2),
    ),
    max_size=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.none() | _steps, frames=st.integers(1, 37), kind=st.sampled_from(KINDS), text=_text)
def test_any_episode_comes_back(root: Path, steps: list[StepTruth] | None, frames: int, kind: Any, text: str) -> None:
    if steps is not None:
        ends = np.cumsum([step.end for step in steps]).tolist()
        steps = [replace(step, end=end) for step, end in zip(steps, ends, strict=True)]
    truth = None if steps is None else tuple(steps)
    episode = Episode("x", text, text, VideoFilm(root / "R1" / "3.mp4"), frames, 7.5, truth, kind=kind)
    write_episode_json(root / "R1" / "again.json", episode)
    again = read_episode(root / "R1" / "again.json")
    assert again.steps == episode.steps
    assert (again.instruction, again.frames, again.fps, again.kind) == (text, frames, 7.5, kind)
