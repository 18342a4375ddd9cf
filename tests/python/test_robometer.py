"""RoboMeter with random weights: which frames it looks at, and that every short cut gives the numbers of the long way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_samples import Samples, picture

from compass_edge.engines.manifest import read_manifest
from compass_edge.engines.onnx.feature_store import FeatureStore
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.errors import UsageError
from compass_edge.models import Clip, Image, Question
from compass_edge.prms.robometer import RoboMeter, baseline_slots, server_slots
from compass_edge.roles.schema import flag, record

OPTIONS = Options(context=2048, batch=4, prefixes=2, self_test=False)
SENTENCE = "Put the 'red' block {into} the box"
DIALECTS = pytest.mark.parametrize("dialect", ["ort", "standard"])
Open = Callable[..., RoboMeter]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def opened(samples: Samples) -> Open:
    def run(dialect: str = "ort", options: Options = OPTIONS, **settings: Any) -> RoboMeter:
        return RoboMeter(samples.model("robometer", dialect=dialect), options, **settings)

    return run


def frames(count: int) -> tuple[Image, ...]:
    return tuple(picture(number) for number in range(count))


# Which frames


@pytest.mark.parametrize(
    ("count", "server", "baseline"),
    [
        (1, (0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0)),
        (2, (0, 0, 0, 0, 0, 0, 0, 1), (0, 1, 1, 1, 1, 1, 1, 1)),
        (5, (0, 0, 1, 1, 2, 2, 3, 4), (0, 1, 2, 3, 4, 4, 4, 4)),  # 4/7 of a frame apart
        (8, (0, 1, 2, 3, 4, 5, 6, 7), (0, 1, 2, 3, 4, 5, 6, 7)),
        (10, (0, 1, 2, 3, 5, 6, 7, 9), (0, 1, 3, 4, 5, 6, 8, 9)),  # 9/7 apart: 1.29 2.57 3.86 5.14 6.43 7.71
        (100, (0, 14, 28, 42, 56, 70, 84, 99), (0, 14, 28, 42, 57, 71, 85, 99)),  # 99/7 = 14.14 apart
    ],
)
def test_slots_by_hand(count: int, server: tuple[int, ...], baseline: tuple[int, ...]) -> None:
    assert server_slots(count, 8) == server
    assert baseline_slots(count, 8) == baseline


@pytest.mark.parametrize("pick", [server_slots, baseline_slots])
def test_slots_are_in_order_and_end_with_the_last_frame(pick: Callable[[int, int], tuple[int, ...]]) -> None:
    for count in range(1, 200):
        for slots in (2, 3, 8, 16):
            chosen = pick(count, slots)
            assert len(chosen) == slots
            assert list(chosen) == sorted(chosen)
            assert (chosen[0], chosen[-1]) == (0, count - 1)


def test_the_frames_reach_the_prompt_in_their_slots(opened: Open) -> None:
    """Each behind its number and with a mark behind it, as the model was trained."""
    meter = opened(slots=3)
    shown = meter._prompt(SENTENCE, meter._chosen(frames(5)))
    assert [shown_picture.image.digest for shown_picture in shown.pictures] == [picture(at).digest for at in (0, 2, 4)]
    marks = np.flatnonzero(shown.ids == meter.body.tokens.progress)
    assert [int(mark) for mark in marks] == [
        shown_picture.end + 1 for shown_picture in shown.pictures
    ]  # <|vision_end|>
    text = meter.body.tokenizer.decode(shown.ids.tolist())
    assert f"The task for the robot is '{SENTENCE}'." in text
    assert "Picture 1: " in text
    assert "Picture 3: " in text


# Names and settings


def test_names_tell_settings_and_weights_apart(opened: Open, samples: Samples) -> None:
    made = [opened(), opened(slots=4), opened(rounding="baseline"), opened(mode="whole"), opened("standard"),
            RoboMeter(samples.model("robometer", seed=1), OPTIONS)]  # fmt: skip
    assert len({meter.name for meter in made}) == len(made)
    assert opened().name == made[0].name
    assert made[0].name.endswith(" (8 slots, server)")
    assert made[3].name.endswith(" (whole)")
    assert opened(options=replace(OPTIONS, batch=2)).max_batch == 2


@pytest.mark.parametrize(
    "settings", [{"mode": "half"}, {"rounding": "up"}, {"slots": 1}, {"slots": 2.5}, {"slots": True}]
)
def test_settings_that_make_no_sense(opened: Open, settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(UsageError, match=name):
        opened(**settings)


# Scores


@DIALECTS
@pytest.mark.parametrize("rounding", ["server", "baseline"])
def test_a_curve_is_its_scores_one_by_one(opened: Open, dialect: str, rounding: str) -> None:
    shown, told = frames(9), list[int]()
    curve = opened(dialect, slots=4, rounding=rounding).curve(SENTENCE, shown, told.append)
    alone = opened(dialect, slots=4, rounding=rounding)
    expected = []
    for count in range(1, 10):
        alone.body.forget()
        expected.append(alone.last([Clip(SENTENCE, shown[:count])])[0])
    np.testing.assert_allclose(curve.progress, [scores.progress[-1] for scores in expected], atol=1e-5)
    np.testing.assert_allclose(curve.success, [scores.success[-1] for scores in expected], atol=1e-5)
    assert curve.progress.shape == curve.success.shape == (9,)
    assert np.ptp(curve.progress) > 1e-3
    assert ((curve.progress >= 0) & (curve.progress <= 1)).all()
    assert told[-1] == 9
    assert told == sorted(told)


@DIALECTS
def test_as_one_sequence_a_frame_does_not_know_what_follows(opened: Open, dialect: str) -> None:
    shown, meter = frames(6), opened(dialect, mode="whole")
    curve = meter.curve(SENTENCE, shown)
    scores = [meter.score([Clip(SENTENCE, shown[:count])])[0] for count in range(1, 7)]
    np.testing.assert_allclose(curve.progress, scores, atol=1e-5)
    np.testing.assert_allclose(meter.curve(SENTENCE, shown[:3]).progress, curve.progress[:3], atol=1e-5)
    assert np.ptp(curve.progress) > 1e-3


@DIALECTS
def test_several_clips_at_once(opened: Open, dialect: str) -> None:
    """More than fit into a batch, and of different lengths."""
    meter = opened(dialect, replace(OPTIONS, batch=2), slots=3)
    clips = [Clip(SENTENCE, frames(count)) for count in (1, 5, 3)] + [Clip("Open it", frames(2))]
    together = meter.score(clips)
    assert len(set(together)) == 4
    for clip, score in zip(clips, together, strict=True):
        fresh = opened(dialect, slots=3)
        assert fresh.score([clip])[0] == pytest.approx(score, abs=1e-5)
    assert meter.score([]) == []


def test_a_clip_without_frames_is_refused(opened: Open) -> None:
    meter = opened(slots=2)
    for asked in (lambda: meter.score([Clip(SENTENCE, ())]), lambda: meter.curve(SENTENCE, [])):
        with pytest.raises(UsageError, match="A clip must have a frame at least"):
            asked()
    assert 0 <= meter.score([Clip(SENTENCE, frames(1))])[0] <= 1


def test_a_clip_that_is_too_long_is_said(opened: Open) -> None:
    meter = opened(options=replace(OPTIONS, context=600), mode="whole")
    with pytest.raises(UsageError, match=r"A prompt of \d+ tokens came, and the model was opened for 600"):
        meter.score([Clip(SENTENCE, frames(40))])


def test_a_failed_pass_is_not_remembered(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, clip = opened(slots=4), Clip(SENTENCE, frames(4))
    expected = opened(slots=4).score([clip])
    run = meter.body.decoder.run

    def failing(*arguments: Any, **options: Any) -> Any:
        run(*arguments, **options)
        raise RuntimeError("out of memory")

    with monkeypatch.context() as during:
        during.setattr(meter.body.decoder, "run", failing)
        with pytest.raises(RuntimeError):
            meter.score([clip])
    assert meter.score([clip]) == pytest.approx(expected, abs=1e-6)


# What is saved


def test_frames_and_prefixes_are_read_once(opened: Open) -> None:
    meter = opened(slots=4)
    meter.curve(SENTENCE, frames(12))
    assert meter.body.vision.passes == 12
    read, reused = meter.body.decoder.tokens, meter.body.rows.reused
    assert reused > read / 2
    meter.curve(SENTENCE, frames(12))
    assert meter.body.vision.passes == 12


def test_a_tower_is_shared_with_the_model_it_came_from(samples: Samples) -> None:
    """A frame that one of them has seen the other knows: RoboMeter's tower is that of its base model."""
    store, folders = FeatureStore(1 << 20), [samples.model(kind) for kind in ("qwen3-vl", "robometer")]
    towers = [read_manifest(folder).files["vision.onnx.data"] for folder in folders]
    assert towers[0] == towers[1]
    model, meter = OnnxVlm(folders[0], OPTIONS, features=store), RoboMeter(folders[1], OPTIONS, features=store)
    shown = tuple(picture(number, (288, 256)) for number in range(3))  # large enough for both to leave them as they are
    alone = RoboMeter(folders[1], OPTIONS).score([Clip(SENTENCE, shown)])

    def ask(image: Image) -> None:
        model.ask([Question((image, "?"), record(seen=flag()))], lambda index, piece: None, lambda: False)

    for image in shown:
        ask(image)
    assert model.body.vision.passes == 3
    assert meter.score([Clip(SENTENCE, shown)]) == alone
    assert meter.body.vision.passes == 0
    small = picture(9)  # which the language model enlarges
    ask(small)
    meter.score([Clip(SENTENCE, (small,))])
    assert (model.body.vision.passes, meter.body.vision.passes) == (4, 1)
    other = RoboMeter(samples.model("robometer", seed=1), OPTIONS, features=store)  # another tower
    other.score([Clip(SENTENCE, shown)])
    assert other.body.vision.passes == 3


def test_the_example(samples: Samples) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, root / "examples" / "score.py", root / "tests" / "goldens" / "h264.mp4", "move it"]
    done = subprocess.run([*command, samples.model("robometer")], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines
    assert all(line.startswith(f"frame {10 * number:4}  0.") for number, line in enumerate(lines))
