"""Models on a cassette: a recorded run replays equal, without a model, and says what it does not know."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cassette_samples import Heard, Scorer, Talker, clip, never, question, records
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import CompassError, UsageError
from compass_edge.loop.call import Models
from compass_edge.loop.cassette import Cassette
from compass_edge.loop.cassette_models import AskPlayer, AskRecorder, ScorePlayer, ScoreRecorder, played, recorded
from compass_edge.models import Cancelled, Clip, Image, OnText, Question

TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
WORDS = st.text(max_size=40)  # what can be hashed: no half of a surrogate pair
IMAGE = st.builds(Image, WORDS)
CLIP = st.builds(Clip, WORDS, st.lists(IMAGE, max_size=3).map(tuple))
QUESTION = st.builds(
    Question, st.lists(WORDS | IMAGE, max_size=4).map(tuple), st.just({"type": "object"}), st.integers(1)
)


@settings(max_examples=60)
@given(st.dictionaries(CLIP, st.floats(), max_size=5), st.dictionaries(QUESTION, TEXT, max_size=5))
def test_a_recorded_run_replays_equal(scores: dict[Clip, float], texts: dict[Question, str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cassette"
        path.touch()
        heard, played = Heard(), Heard()
        with Cassette.open(path) as cassette:
            recorded = ScoreRecorder(cassette, Scorer(scores)).score(list(scores))
            replies = AskRecorder(cassette, Talker(texts)).ask(list(texts), heard, never)
            assert (cassette.conflicts, cassette.failure) == (0, "")
        cassette = Cassette.open(path)
        assert cassette.note == ""
        again = ScorePlayer(cassette, "scorer").score(list(scores))
        assert list(map(repr, again)) == list(map(repr, recorded)) == list(map(repr, scores.values()))
        assert AskPlayer(cassette, "talker").ask(list(texts), played, never) == replies == list(texts.values())
        assert played.texts(len(texts)) == heard.texts(len(texts)) == replies
        assert all(len(pieces) <= 4 and all(pieces) for pieces in played.pieces.values())


def test_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    scorer, talker = Scorer(), Talker()
    clips = [clip("a", "1"), clip("b"), clip("a", "2"), clip("b"), clip("c")]
    questions = [question("a"), question("b"), question("b"), question("c", "1")]
    with Cassette.open(tmp_path / "cassette") as cassette:
        score, ask = ScoreRecorder(cassette, scorer), AskRecorder(cassette, talker)
        assert (score.name, score.max_batch, ask.name, ask.max_batch) == ("scorer", 7, "talker", 3)
        score.score(clips[:1])
        assert score.score(clips) == Scorer().score(clips)
        assert scorer.asked == [clips[0], clips[1], clips[2], clips[4]]
        assert score.score([]) == []
        ask.ask(questions[:1], Heard(), never)
        heard = Heard()
        assert ask.ask(questions, heard, never) == Talker().ask(questions, Heard(), never) == heard.texts(4)
        assert talker.asked == [questions[0], questions[1], questions[3]]
    with Cassette.open(tmp_path / "cassette") as cassette:  # another day
        ScoreRecorder(cassette, scorer).score([*clips, clip("d")])
        assert scorer.asked[4:] == [clip("d")]
    assert len(records(tmp_path / "cassette")) == 5 + 3


def test_an_unknown_call_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        ScoreRecorder(cassette, Scorer()).score([clip("pick the cup", "1")])
        AskRecorder(cassette, Talker()).ask([question("done?")], Heard(), never)
    cassette = Cassette.open(path)
    heard = Heard()
    for call, words in [
        (
            lambda: ScorePlayer(cassette, "scorer").score([clip("pick the cup", "2")]),
            "score .* 'scorer' .* 'pick the cup'",
        ),
        (lambda: ScorePlayer(cassette, "other").score([clip("pick the cup", "1")]), "'other' .* calls are of 'scorer'"),
        (
            lambda: AskPlayer(cassette, "talker").ask([question("done?"), question("up?")], heard, never),
            "ask .* 'up\\?'",
        ),
        (lambda: AskPlayer(cassette, "scorer").ask([question("done?")], heard, never), "calls are of 'talker'"),
    ]:
        with pytest.raises(CompassError, match=words) as caught:
            call()
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")
        assert caught.value.exit_code == 1
    assert heard.pieces == {}  # nothing is said of a batch that fails
    with pytest.raises(UsageError, match=r"There is no cassette .* to play"):
        AskPlayer(Cassette.open(tmp_path / "nowhere"), "talker")
    assert not (tmp_path / "nowhere").exists()


def test_two_threads_two_answers(tmp_path: Path) -> None:
    """Both ask at once: the first answer stays, both runs go on with it, and somebody is told."""
    both = threading.Barrier(2, timeout=20)

    def mood() -> int:
        both.wait()
        return threading.get_ident()

    class MoodyScorer(Scorer):
        def score(self, clips: Sequence[Clip]) -> Sequence[float]:
            return [float(mood()) for _ in clips]

    class MoodyTalker(Talker):
        def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
            return [said + str(mood()) for said in super().ask(questions, on_text, cancelled)]

    said: list[str] = []
    results: list[tuple[float, str]] = []
    with Cassette.open(tmp_path / "cassette", warn=said.append) as cassette:
        scorer, talker = ScoreRecorder(cassette, MoodyScorer()), AskRecorder(cassette, MoodyTalker())

        def run() -> None:
            results.append((scorer.score([clip("a")])[0], talker.ask([question("b")], Heard(), never)[0]))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cassette.conflicts == len(said) == 2
    assert all("in two ways" in text for text in said)
    assert results[0] == results[1]
    cassette = Cassette.open(tmp_path / "cassette")
    assert ScorePlayer(cassette, "scorer").score([clip("a")]) == [results[0][0]]
    assert AskPlayer(cassette, "talker").ask([question("b")], Heard(), never) == [results[0][1]]


def test_many_threads(tmp_path: Path) -> None:
    clips = [clip("a" * size) for size in range(40)]
    with Cassette.open(tmp_path / "cassette") as cassette:
        model = ScoreRecorder(cassette, Scorer())
        threads = [threading.Thread(target=model.score, args=(clips[at % 5 :],)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cassette.conflicts == 0
    assert len(records(tmp_path / "cassette")) == 40
    assert ScorePlayer(Cassette.open(tmp_path / "cassette"), "scorer").score(clips) == Scorer().score(clips)


def test_a_cancelled_reply_is_not_kept(tmp_path: Path) -> None:
    left = iter([False, False, True])
    asked = question("long story")
    with Cassette.open(tmp_path / "cassette") as cassette:
        model = AskRecorder(cassette, Talker({asked: "once upon"}))
        assert model.ask([asked], Heard(), lambda: next(left)) == ["on"]
        assert not (tmp_path / "cassette").exists()
        assert model.ask([asked], Heard(), never) == ["once upon"]
        heard = Heard()
        assert AskPlayer(cassette, "talker", max_batch=2).ask([asked], heard, lambda: True) == ["once upon"]
        assert heard.pieces == {}


def test_a_model_that_forgets_an_answer(tmp_path: Path) -> None:
    class Forgetful(Scorer):
        def score(self, clips: Sequence[Clip]) -> Sequence[float]:
            return super().score(clips)[1:]

    with Cassette.open(tmp_path / "cassette") as cassette:
        with pytest.raises(CompassError, match="'scorer' gave 1 replies to 2 calls"):
            ScoreRecorder(cassette, Forgetful()).score([clip("a"), clip("b")])
        assert not (tmp_path / "cassette").exists()


def test_the_three_models_of_a_loop(tmp_path: Path) -> None:
    live = Models(Talker(), Scorer(), Talker())
    with Cassette.open(tmp_path / "cassette") as cassette:
        models = recorded(cassette, live)
        assert models.names() == live.names()
        replies = (
            models.orienter.ask([question("o")], Heard(), never),
            models.prm.score([clip("p")]),
            models.verifier.ask([question("v")], Heard(), never),
        )
    models = played(Cassette.open(tmp_path / "cassette"), live.names())
    assert models.names() == live.names()
    assert replies == (
        models.orienter.ask([question("o")], Heard(), never),
        models.prm.score([clip("p")]),
        models.verifier.ask([question("v")], Heard(), never),
    )
