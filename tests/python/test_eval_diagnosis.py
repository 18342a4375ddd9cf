"""The paired diagnosis: which clips a model is shown, and where its scores are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from eval_film import MemoryFilm, episode
from eval_runs import many
from hypothesis import given
from hypothesis import strategies as st

from compass_edge.data.film import Picture
from compass_edge.errors import CompassError, UsageError
from compass_edge.eval.diagnosis import diagnose, pairs, without_context
from compass_edge.eval.knowledge import Knowledge
from compass_edge.eval.metrics import measure
from compass_edge.eval.oracle import OraclePrm
from compass_edge.eval.prefix import Prefix
from compass_edge.loop.active import ActiveStep, Scored
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Subtask
from compass_edge.loop.settings import Settings
from compass_edge.models import Clip, Image

EVERY_5 = Settings(every=5)


def number(image: Image) -> int:
    return int(image.digest.rpartition("/")[2])


@dataclass
class Told:
    """A model that says what it is told to, of a sentence and a frame, and remembers what it was shown."""

    says: Callable[[str, int, int], float]  # sentence, first frame, last frame
    max_batch: int = 4
    name: str = "told"
    batches: list[list[tuple[str, list[int]]]] = field(default_factory=list)

    def score(self, clips: Sequence[Clip]) -> list[float]:
        self.batches.append([(clip.sentence, [number(frame) for frame in clip.frames]) for clip in clips])
        for clip in clips:
            for frame in clip.frames:
                assert np.array_equal(frame.pixels, MemoryFilm("", 999).picture(number(frame)))
        return [self.says(clip.sentence, number(clip.frames[0]), number(clip.frames[-1])) for clip in clips]

    @property
    def clips(self) -> dict[str, list[list[int]]]:
        shown: dict[str, list[list[int]]] = {}
        for batch in self.batches:
            for sentence, frames in batch:
                shown.setdefault(sentence, []).append(frames)
        return shown


def test_which_clips_a_model_is_shown() -> None:
    """Prefixes that start where the episode or the step does, every fifth frame and the last."""
    one = episode([12, 20], 24, sentences=["one", "two"], instruction="both")
    model = Told(lambda sentence, first, last: 0.0)
    diagnose(model, one, EVERY_5)
    assert model.clips["both"] == [[0], [0, 5], [0, 5, 10], [0, 5, 10, 15], [0, 5, 10, 15, 20], [0, 5, 10, 15, 20, 23]]
    assert model.clips["one"] == [[0], [0, 5], [0, 5, 10], [0, 5, 10, 12]]
    assert model.clips["two"] == [[12], [12, 17], [12, 17, 20]]
    assert [len(batch) for batch in model.batches] == [4, 4, 4, 1], "as many at once as it takes, across sentences"


def test_without_settings_three_frames_a_second_are_shown() -> None:
    model = Told(lambda sentence, first, last: 0.0)
    without_context(model, episode([12, 20], 24, fps=10.0))
    assert model.batches[-1][-1][1] == [0, 3, 6, 9, 12, 15, 18, 21, 23]


def test_scores_are_placed_by_hand() -> None:
    """Two steps of ten frames. The model rises to 0.8 in each: the oracle's second step begins at 50, the chained one's at 40."""
    one = episode([10, 20], 26, sentences=["one", "two"], instruction="both")
    model = Told(lambda sentence, first, last: 0.3 if sentence == "both" else 0.8 * (last - first) / 10)
    found = diagnose(model, one, EVERY_5)
    assert found.without.values == pytest.approx(np.full(26, 30.0))
    rise = 40 * np.arange(10) / 10
    assert found.oracle.values == pytest.approx([*rise, *(50 + rise), *[100] * 6])
    assert found.chained.values == pytest.approx([*rise, *(40 + rise), *[80] * 6])
    names = [result.method for result in found.results]
    assert names == ["told, without context", "told, oracle context", "told, self-chained"]
    truth = one.progress()
    first, second = pairs(found, one)
    assert (first.episode, first.step, second.step) == ("T/0", 1, 2)
    assert first.without == pytest.approx(np.abs(30 - truth[:10]).mean())
    assert first.oracle == first.chained == pytest.approx(np.abs(rise - truth[:10]).mean())
    assert second.without == pytest.approx(np.abs(30 - truth[10:20]).mean())
    assert second.oracle == pytest.approx(np.abs(50 + rise - truth[10:20]).mean())
    assert second.chained == pytest.approx(np.abs(40 + rise - truth[10:20]).mean())


def test_between_scores_a_curve_is_linear() -> None:
    one = episode([10], 11)
    found = without_context(Told(lambda sentence, first, last: {0: 0.0, 5: 1.0, 10: 0.2}[last]), one, EVERY_5)
    assert found.values == pytest.approx([0, 20, 40, 60, 80, 100, 84, 68, 52, 36, 20])


def test_scores_that_are_no_numbers_leave_their_frame_without_one() -> None:
    one = episode([10], 11)
    scores = {0: 0.0, 5: float("nan"), 10: 1.4}
    found = without_context(Told(lambda sentence, first, last: scores[last]), one, EVERY_5)
    assert found.values == pytest.approx(np.linspace(0, 100, 11)), "and one above 1 is 1"
    never = without_context(Told(lambda sentence, first, last: float("nan")), one, EVERY_5)
    assert never.values == pytest.approx(np.zeros(11))


def test_steps_that_the_film_cuts_off() -> None:
    one = episode([10, 20, 30], 16, sentences=["one", "two", "three"])
    model = Told(lambda sentence, first, last: 0.5)
    found = diagnose(model, one, EVERY_5)
    assert model.clips["two"] == [[10], [10, 15]]
    assert "three" not in model.clips
    assert found.oracle.values[-1] == pytest.approx(50)
    assert [pair.step for pair in pairs(found, one)] == [1, 2]


def test_an_episode_of_nothing() -> None:
    found = diagnose(Told(lambda sentence, first, last: 0.7), episode([], 9), EVERY_5)
    assert found.without.values == pytest.approx(np.full(9, 70.0))
    assert found.oracle.values.max() == found.chained.values.max() == 0
    assert pairs(found, episode([], 9)) == []


def test_without_context_needs_no_annotation() -> None:
    one = replace(episode([10], 11), steps=None)
    assert without_context(Told(lambda sentence, first, last: 0.5), one).values == pytest.approx(np.full(11, 50.0))
    with pytest.raises(UsageError, match="not annotated"):
        diagnose(Told(lambda sentence, first, last: 0.5), one)


def test_an_oracle_is_right_with_context_and_chains_without_loss() -> None:
    episodes = many(5)
    for one in episodes:
        found = diagnose(OraclePrm(Knowledge(episodes), ceiling=0.999), one)
        for result in found.results:
            assert measure(result, one).mae < 0.1, result.method
        assert found.chained.values == pytest.approx(found.oracle.values, abs=1e-9)


def test_a_film_that_ends_too_soon_is_named() -> None:
    class Short(MemoryFilm):
        def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
            yield from super().pictures(every, min(stop or 99, 14))

    one = episode([10, 20], 21, film=Short("short", 21))
    with pytest.raises(CompassError, match="must have 21 frames, and frame 15 did not come"):
        without_context(Told(lambda sentence, first, last: 0.5), one, EVERY_5)


def test_a_model_that_loses_a_clip_is_named() -> None:
    class Loses(Told):
        def score(self, clips: Sequence[Clip]) -> list[float]:
            return super().score(clips)[1:]

    with pytest.raises(CompassError, match="'told' was given 3 clips and gave 2 scores"):
        without_context(Loses(lambda sentence, first, last: 0.5), episode([10], 11), EVERY_5)


@given(st.integers(1, 90), st.integers(4, 40))
def test_a_long_clip_is_thinned_as_the_loop_does(frames: int, max_frames: int) -> None:
    prefix = Prefix("s", max_frames)
    step = ActiveStep(1, Subtask("s", "", "", ""), Mark(0, 0))
    for at in range(frames):
        clip = [number(image) for image in prefix.with_frame(Image(f"k/{at}")).frames]
        assert clip[0] == 0
        assert clip[-1] == at
        assert len(clip) <= max_frames
        gaps = np.diff(clip[:-1])
        assert gaps.size == 0 or (gaps == gaps[0]).all(), "evenly"
        if at:
            step = step.longer(Scored(Mark(at, 0), 0.0), 1, max_frames)
            assert clip == [0, *(scored.frame.seq for scored in step.clip)]
    if frames <= max_frames:
        assert clip == list(range(frames))
    else:
        assert len(clip) > max_frames // 2
