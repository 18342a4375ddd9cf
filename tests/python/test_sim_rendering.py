"""Rendering: films and annotations that agree with each other and with the state, and an audit that would tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")

from compass_edge.data.episode import Episode
from compass_edge.data.folder import read_episode
from compass_edge.errors import UsageError
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.oracle import oracles
from compass_edge.sim.assets import panda_assets
from compass_edge.sim.audit import audit
from compass_edge.sim.benchmark import ensure, is_current
from compass_edge.sim.camera import Camera
from compass_edge.sim.catalogue import write
from compass_edge.sim.check import check
from compass_edge.sim.negatives import judge_negative
from compass_edge.sim.packing import unfolded
from compass_edge.sim.world import World

pytestmark = pytest.mark.usefixtures("graphics")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sim")
    ensure(["R1"], [0], folder, size=224)
    return folder


@pytest.fixture
def episode(root: Path) -> Episode:
    return read_episode(root / "R1" / "0.json", root)


def world(name: str) -> World:
    task, _, seed = name.partition("/")
    script = write(task, int(seed))
    return World(script.things, script.look, panda_assets(), lambda _: None)


def test_film_and_annotation_agree(episode: Episode) -> None:
    assert audit(episode) == []
    assert (episode.id, episode.task, episode.form, episode.fps) == ("R1/0", "R1", "recurrence", 10.0)
    assert episode.film.frames == episode.frames
    assert episode.completed == episode.size
    _, picture = next(iter(episode.film.pictures()))
    assert picture.shape == (224, 224, 3)
    button = next(thing["name"] for thing in episode.tracks["scene"]["things"] if thing["kind"] == "button")
    seen = [button in names for names in unfolded(episode.tracks["visible"])]
    assert np.mean(seen) > 0.8
    assert episode.progress("path")[-1] == episode.progress()[-1] == 100.0


def changed(episode: Episode, **tracks: Any) -> Episode:
    return replace(episode, tracks={**episode.tracks, **tracks})


def test_the_audit_finds_a_boundary_that_is_off_by_one(episode: Episode) -> None:
    first, *rest = episode.truth
    for by in (-1, 1):
        wrong = audit(replace(episode, steps=(replace(first, end=first.end + by), *rest)))
        assert any("Step 1 of R1/0 ends at frame" in sentence for sentence in wrong)


def test_the_audit_finds_what_the_state_does_not_show(episode: Episode) -> None:
    held = ["red_block_1", *episode.tracks["held"][1:]]
    assert any("is held" in sentence for sentence in audit(changed(episode, held=held)))
    underway = [not episode.tracks["underway"][0], *episode.tracks["underway"][1:]]
    assert any("underway" in sentence for sentence in audit(changed(episode, underway=underway)))
    occurrence = [2, *episode.tracks["occurrence"][1:]]
    assert any("another occurrence" in sentence for sentence in audit(changed(episode, occurrence=occurrence)))
    satisfied = {"table": [["nothing"]], "at": [0] * episode.frames}
    assert any("other predicates" in sentence for sentence in audit(changed(episode, satisfied=satisfied)))


def test_the_audit_finds_a_state_that_was_touched(episode: Episode) -> None:
    shots = json.loads(json.dumps(episode.tracks["shots"]))
    shots["gripper"][5][0] += 1  # a tenth of a millimetre
    assert any("state hash" in sentence for sentence in audit(changed(episode, shots=shots)))


def test_the_audit_finds_a_film_of_another_length(episode: Episode) -> None:
    assert "its film" in audit(replace(episode, frames=episode.frames - 1))[0]


def test_what_is_there_is_left_alone(root: Path) -> None:
    film = root / "R1" / "0.mp4"
    before = film.stat().st_mtime_ns
    told: list[tuple[int, int]] = []
    ensure(["R1"], [0], root, size=224, on_progress=lambda done, total, _: told.append((done, total)))
    assert film.stat().st_mtime_ns == before
    assert told == [(1, 1)]


def test_what_is_damaged_or_of_another_size_is_rendered_again(root: Path, tmp_path: Path) -> None:
    path = root / "R1" / "0.json"
    assert is_current(path, 224)
    assert not is_current(path, 448)
    broken = tmp_path / "0.json"
    (tmp_path / "0.mp4").write_bytes(b"")
    for text in ('{"about"', "[]", '{"about": 3}', '{"about": {"simulator": 0, "size": 224}}', "{}"):
        broken.write_text(text)
        assert not is_current(broken, 224)


def test_a_task_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no task 'T1'"):
        ensure(["T1"], [0], tmp_path)
    with pytest.raises(UsageError, match="A seed must be"):
        ensure(["R1"], [7], tmp_path)


def test_the_check_counts_and_judges(root: Path) -> None:
    found = check(["R1"], [0], root, size=224, negatives=False)
    told = found.to_dict()
    assert (told["tasks"], told["completed"], told["negatives"], told["wrong"]) == (1, 1, 0, [])
    assert told["above_floor"] == 1
    row = told["per_task"][0]
    assert (row["task"], row["K"], row["completed"]) == ("R1", [5], 1)
    assert row["floor"] > 10


def test_the_check_finds_what_was_tampered_with(root: Path, tmp_path: Path) -> None:
    (tmp_path / "R1").mkdir()
    fields = json.loads((root / "R1" / "0.json").read_text())
    (tmp_path / "R1" / "0.mp4").write_bytes((root / "R1" / "0.mp4").read_bytes())
    fields["tracks"]["scene"]["state_hash"] = "0" * 16
    fields["steps"][2]["end"] += 1
    (tmp_path / "R1" / "0.json").write_text(json.dumps(fields))
    wrong = check(["R1"], [0], tmp_path, size=224, negatives=False).wrong
    assert any("Step 3 of R1/0 ends at frame" in sentence for sentence in wrong)
    assert any("was rendered from the state 0000000000000000" in sentence for sentence in wrong)


def test_a_cover_hides_what_is_under_it() -> None:
    hidden, covered = world("S8/0"), world("S8/0")
    block = next(name for name, thing in hidden.things.items() if thing.role == "block 0")
    with Camera(hidden, 224) as camera:
        assert block not in camera.visible(hidden)
        assert (
            sum(thing.kind == "cover" for name, thing in hidden.things.items() if name in camera.visible(hidden)) == 3
        )
    for name, thing in covered.things.items():
        if thing.kind == "cover":
            joint = covered.model.body(name).jntadr[0]
            covered.data.qpos[covered.model.jnt_qposadr[joint] + 2] += 0.5
    import mujoco

    mujoco.mj_forward(covered.model, covered.data)
    with Camera(covered, 224) as camera:
        assert block in camera.visible(covered)


def test_the_same_picture_comes_again_and_small_ones_are_means() -> None:
    one, other = world("Q6/1"), world("Q6/1")
    with Camera(one, 448) as camera:
        large = camera.picture(one)
    with Camera(other, 448) as camera:
        np.testing.assert_array_equal(camera.picture(other), large)
    with Camera(other, 224) as camera:
        small = camera.picture(other)
    means = large.reshape(224, 2, 224, 2, 3).mean(axis=(1, 3))
    assert np.abs(small - means).max() <= 0.5


def test_egl_and_osmesa_draw_the_same() -> None:
    code = (
        "import hashlib; from test_sim_rendering import world; from compass_edge.sim.camera import Camera; it = world('Q2/1')\n"
        "with Camera(it, 448) as camera: print(hashlib.sha256(camera.picture(it).tobytes()).hexdigest())"
    )
    drawn = []
    for backend in ("egl", "osmesa"):
        environment = {**os.environ, "MUJOCO_GL": backend, "PYTHONPATH": str(Path(__file__).parent)}
        environment.pop("PYOPENGL_PLATFORM", None)
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode and not os.environ.get("CI"):
            pytest.skip(f"{backend} does not work here")
        assert done.returncode == 0, done.stderr
        drawn.append(done.stdout.split()[-1])
    assert drawn[0] == drawn[1]


def test_negatives_share_a_film_and_the_loop_follows_them(tmp_path: Path) -> None:
    paths = ensure(["E1", "X1", "M2"], [], tmp_path, size=224)
    assert len(list(tmp_path.rglob("*.mp4"))) == 1
    episodes = [read_episode(path, tmp_path) for path in paths]
    assert [judge_negative(episode) for episode in episodes] == [[], [], []]
    assert [episode.progress()[-1] for episode in episodes] == [62.5, 100.0, 0.0]
    for episode in episodes:
        curve = run_loop(episode, oracles(episodes)).values
        assert np.abs(curve - episode.progress()).mean() < 1


def test_a_lamp_shines() -> None:
    dark = world("S4/0")
    with Camera(dark, 224) as camera:
        before = camera.picture(dark).astype(int)
        dark.shine("red")
        after = camera.picture(dark).astype(int)
    brighter = (after - before)[..., 0] > 80
    assert 50 < brighter.sum() < 2000
