"""Each role's exam: the questions are what they say they are, oracles pass where they can, and answers are counted right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from compass_edge.data.dataset import open_dataset
from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval import verifier_questions as questions_module
from compass_edge.eval.knowledge import Knowledge
from compass_edge.eval.oracle import OracleOrienter, oracles
from compass_edge.eval.orienter_exam import OrienterExam, score_orienter
from compass_edge.eval.performed import Performed
from compass_edge.eval.rate import Rate
from compass_edge.eval.result import Result
from compass_edge.eval.sentence_exam import SentenceExam, score_sentences, wrong_sentences
from compass_edge.eval.untrue import other_targets
from compass_edge.eval.verifier_exam import VERIFIER_EXAM, VerifierExam, score_verifier
from compass_edge.eval.verifier_questions import CASES, verifier_questions
from compass_edge.eval.wording import Wording, outcomes_of, reworded, subtasks_of
from compass_edge.loop.settings import Settings
from compass_edge.models import Clip
from compass_edge.sim.acts import Carry
from compass_edge.sim.dice import Dice

SETTINGS = Settings(every=2)
EPISODES = list(open_dataset("bundled").episodes())
WORDINGS: tuple[Wording, ...] = ("annotation", "orienter")


def ids(episode: Episode) -> str:
    return episode.id


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("episode", EPISODES, ids=ids)
def test_questions_are_what_the_state_says(episode: Episode, wording: Wording) -> None:
    asked, performed = verifier_questions(episode, 2, wording), Performed.of(episode)
    assert asked == verifier_questions(episode, 2, wording)
    assert [one.right for one in asked] == [True, True, False, False]
    told = subtasks_of(episode, wording)
    for one in asked:
        assert 0 <= one.start <= one.during < one.candidate < episode.frames
        assert all(frame % 2 == 0 for frame in one.frames)
        assert len(one.memory) == one.step
        act, own = performed.act(one.step), one.subtask == told[one.step]
        happened = performed.happened(act, one.start, one.candidate)
        assert own == (one.case not in ("wrong sentence", "wrong target"))
        assert happened == (one.case in ("finished", "wrong sentence", "wrong target", "no evidence"))
        if one.case == "finished" and not isinstance(act, Carry):
            assert performed.shows(act, one.during)
        if one.case == "no evidence":
            assert not performed.shows(act, one.during)
            assert one.subtask.completion == "brief"


def test_every_case_is_drawn_and_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other dice other questions are drawn of the same episodes."""
    cases = set()
    for seed in range(24):
        monkeypatch.setattr(questions_module, "Dice", lambda *parts, seed=seed: Dice(*parts, seed))
        for episode in EPISODES:
            test_questions_are_what_the_state_says(episode, "orienter")
            cases |= {one.case for one in verifier_questions(episode, 2, "orienter")}
    assert cases == set(CASES)


def test_another_target_is_another_place_of_the_scene_and_did_not_happen() -> None:
    episode = next(one for one in EPISODES if one.task == "S1")
    begin, end = episode.begins[0], episode.truth[0].end
    sentences = [one.sentence for one in other_targets(Performed.of(episode), 0, begin, end)]
    assert len(sentences) == 3  # four mats that look alike, less the one it comes from; onto the white mat it went
    assert all(
        sentence.startswith("Move the red block from the front right purple mat onto the ") for sentence in sentences
    )
    assert not any("white" in sentence for sentence in sentences)


def test_an_episode_of_another_data_set_cannot_be_asked_about() -> None:
    with pytest.raises(UsageError, match="Only an episode of the simulator"):
        Performed.of(replace(EPISODES[0], tracks={}))


def test_the_oracle_passes_wherever_it_can_be_seen() -> None:
    """It knows what happened, and does not look: where nobody can tell, it is wrong."""
    exam = VerifierExam(lambda: oracles(EPISODES), SETTINGS, "annotation")
    results = [result for episode in EPISODES for result in exam.run(episode)]
    score = score_verifier(results, EPISODES, SETTINGS, "annotation")
    assert score.right.of == 4 * len(EPISODES)
    assert score.invalid == 0
    for case, rate in score.cases.items():
        assert rate.hits == (0 if case == "no evidence" else rate.of)
    assert score.false_accepts == Rate(score.cases["no evidence"].of, 2 * len(EPISODES))


def test_answers_are_counted() -> None:
    episode = EPISODES[0]
    yes = Result(episode.id, VERIFIER_EXAM, np.array([1.0, 1.0, 1.0, 1.0]))
    score = score_verifier([yes], EPISODES, SETTINGS, "orienter")
    assert (score.right, score.false_accepts, score.invalid) == (Rate(2, 4), Rate(2, 2), 0)
    mixed = Result(episode.id, VERIFIER_EXAM, np.array([0.0, -1.0, 0.0, -1.0]))
    score = score_verifier([mixed], EPISODES, SETTINGS, "orienter")
    assert (score.right, score.false_accepts, score.invalid) == (Rate(2, 4), Rate(0, 2), 2)


def test_the_orienter_is_exact_or_not() -> None:
    good = OrienterExam(lambda: oracles(EPISODES), SETTINGS, "annotation")
    score = score_orienter([result for episode in EPISODES for result in good.run(episode)], EPISODES)
    assert (score.exact, score.sized, score.invalid) == (Rate(3, 3), Rate(3, 3), 0)
    assert score.tasks == {episode.task: Rate(1, 1) for episode in EPISODES}
    made = replace(oracles(EPISODES), orienter=OracleOrienter(Knowledge(EPISODES), plan_error=1.0))
    bad = OrienterExam(lambda: made, SETTINGS, "annotation")
    score = score_orienter([result for episode in EPISODES for result in bad.run(episode)], EPISODES)
    assert (score.exact, score.sized) == (Rate(0, 3), Rate(0, 3))


class Counting:
    """Says how many frames it was shown, of a hundred."""

    name, max_batch = "counting", 3

    def __init__(self) -> None:
        self.clips: list[Clip] = []

    def score(self, clips: Sequence[Clip]) -> list[float]:
        self.clips += clips
        return [len(clip.frames) / 100 for clip in clips]


def test_a_wrong_sentence_is_scored_once_at_the_end_of_the_clip() -> None:
    episode, prm = next(one for one in EPISODES if one.task == "S1"), Counting()
    exam = SentenceExam(lambda: prm, SETTINGS, "orienter")
    results = exam.run(episode)
    wrong = wrong_sentences(episode, "orienter")
    assert {clip.sentence for clip in prm.clips} == {stretch.sentence for _, stretch in wrong}
    assert len(prm.clips) == len(wrong) >= 2
    score = score_sentences(results, EPISODES)
    frames = [len(stretch.sampled(2)) / 100 for _, stretch in wrong]
    assert score.score.value == pytest.approx(np.mean(frames))
    assert score.asked == len(wrong)


def test_one_button_has_no_wrong_sentence() -> None:
    episode = next(one for one in EPISODES if one.task == "R1")
    (result,) = SentenceExam(Counting, SETTINGS, "orienter").run(episode)
    assert result.values.size == 0
    assert score_sentences([result], EPISODES).asked == 0


def test_wordings() -> None:
    for episode in EPISODES:
        assert reworded(episode, "annotation") is episode
        told = reworded(episode, "orienter")
        assert [step.end for step in told.truth] == [step.end for step in episode.truth]
        assert [step.sentence for step in told.truth] == [one.sentence for one in subtasks_of(episode, "orienter")]
        assert len(outcomes_of(episode, "orienter")) == episode.size
