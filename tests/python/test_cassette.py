"""The cassette: a recorded run replays equal, without a model, and says what it does not know."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.loop.cassette import Cassette
from compass_edge.models import Cancelled, Clip, Image, OnText, Question

TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
WORDS = st.text(max_size=40)  # what can be hashed: no half of a surrogate pair
IMAGE = st.builds(Image, WORDS)
CLIP = st.builds(Clip, WORDS, st.lists(IMAGE, max_size=3).map(tuple))
QUESTION = st.builds(
    Question, st.lists(WORDS | IMAGE, max_size=4).map(tuple), st.just({"type": "object"}), st.integers(1)
)


class Scorer:
    """A progress model that counts the clips it is asked for."""

    name, max_batch = "scorer", 7

    def __init__(self, replies: dict[Clip, float] | None = None) -> None:
        self.asked: list[Clip] = []
        self.replies = replies

    def score(self, clips: Sequence[Clip]) -> Sequence[float]:
        self.asked += clips
        return [len(clip.sentence) / 7 if self.replies is None else self.replies[clip] for clip in clips]


class Talker:
    """A language model that answers with the text parts, letter by letter."""

    name, max_batch = "talker", 3

    def __init__(self, replies: dict[Question, str] | None = None) -> None:
        self.asked: list[Question] = []
        self.replies = replies

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        self.asked += questions
        replies = []
        for at, question in enumerate(questions):
            whole = str(question.parts) if self.replies is None else self.replies[question]
            said = ""
            for letter in whole:
                if cancelled():
                    break
                on_text(at, letter)
                said += letter
            replies.append(said)
        return replies


class Heard:
    """What on_text got, by place in the batch."""

    def __init__(self) -> None:
        self.pieces: dict[int, list[str]] = {}

    def __call__(self, at: int, piece: str) -> None:
        self.pieces.setdefault(at, []).append(piece)

    def texts(self, size: int) -> list[str]:
        return ["".join(self.pieces.get(at, [])) for at in range(size)]


def never() -> bool:
    return False


def clip(sentence: str, *frames: str) -> Clip:
    return Clip(sentence, tuple(map(Image, frames)))


def question(text: str, *frames: str) -> Question:
    return Question((text, *map(Image, frames)), {})


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(CLIP, st.floats(), max_size=5), st.dictionaries(QUESTION, TEXT, max_size=5))
def test_a_recorded_run_replays_equal(scores: dict[Clip, float], texts: dict[Question, str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cassette"
        path.touch()
        heard, played = Heard(), Heard()
        with Cassette.open(path) as cassette:
            recorded = cassette.recorder_score(Scorer(scores)).score(list(scores))
            replies = cassette.recorder_ask(Talker(texts)).ask(list(texts), heard, never)
            assert (cassette.conflicts, cassette.failure) == (0, "")
        cassette = Cassette.open(path)
        assert cassette.note == ""
        again = cassette.player_score("scorer").score(list(scores))
        assert list(map(repr, again)) == list(map(repr, recorded)) == list(map(repr, scores.values()))
        assert cassette.player_ask("talker").ask(list(texts), played, never) == replies == list(texts.values())
        assert played.texts(len(texts)) == heard.texts(len(texts)) == replies
        assert all(len(pieces) <= 4 and all(pieces) for pieces in played.pieces.values())


def test_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    scorer, talker = Scorer(), Talker()
    clips = [clip("a", "1"), clip("b"), clip("a", "2"), clip("b"), clip("c")]
    questions = [question("a"), question("b"), question("b"), question("c", "1")]
    with Cassette.open(tmp_path / "cassette") as cassette:
        score, ask = cassette.recorder_score(scorer), cassette.recorder_ask(talker)
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
        cassette.recorder_score(scorer).score([*clips, clip("d")])
        assert scorer.asked[4:] == [clip("d")]
    assert len(records(tmp_path / "cassette")) == 5 + 3


def test_a_person_can_read_it(tmp_path: Path) -> None:
    with Cassette.open(tmp_path / "cassette") as cassette:
        cassette.recorder_score(Scorer()).score([clip("把杯子\n放好", "1")])
        cassette.recorder_ask(Talker({question("rules " * 50 + "cup?"): "yes"})).ask(
            [question("rules " * 50 + "cup?")], Heard(), never
        )
    assert "把杯子 放好" in (tmp_path / "cassette").read_text()
    score, ask = records(tmp_path / "cassette")
    assert score == {
        "key": clip("把杯子\n放好", "1").digest("scorer"),
        "model": "scorer",
        "kind": "score",
        "reply": 6 / 7,
        "sentence": "把杯子 放好",
    }
    assert (ask["kind"], ask["model"], ask["reply"]) == ("ask", "talker", "yes")
    assert len(str(ask["prompt"])) < 130
    assert str(ask["prompt"]).endswith("cup?")


def test_an_unknown_call_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        cassette.recorder_score(Scorer()).score([clip("pick the cup", "1")])
        cassette.recorder_ask(Talker()).ask([question("done?")], Heard(), never)
    cassette = Cassette.open(path)
    heard = Heard()
    for call, words in [
        (
            lambda: cassette.player_score("scorer").score([clip("pick the cup", "2")]),
            "score .* 'scorer' .* 'pick the cup'",
        ),
        (lambda: cassette.player_score("other").score([clip("pick the cup", "1")]), "'other' .* calls are of 'scorer'"),
        (
            lambda: cassette.player_ask("talker").ask([question("done?"), question("up?")], heard, never),
            "ask .* 'up\\?'",
        ),
        (lambda: cassette.player_ask("scorer").ask([question("done?")], heard, never), "calls are of 'talker'"),
    ]:
        with pytest.raises(CompassError, match=words) as caught:
            call()
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith(".")
        assert caught.value.exit_code == 1
    assert heard.pieces == {}  # nothing is said of a batch that fails
    with pytest.raises(UsageError, match=r"There is no cassette .* to play"):
        Cassette.open(tmp_path / "nowhere").player_ask("talker")
    assert not (tmp_path / "nowhere").exists()


def test_two_answers_to_one_call_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        cassette.recorder_score(Scorer()).score([clip("a"), clip("b")])
        cassette.recorder_score(Scorer({clip("nan"): math.nan})).score([clip("nan")])
    data = path.read_bytes()
    path.write_bytes(data + data)  # two recordings in one file
    assert Cassette.open(path).player_score("scorer").score([clip("b")]) == [1 / 7]
    other = records(path)[1] | {"reply": 0.5}
    path.write_bytes(data + json.dumps(other).encode() + b"\n")
    with pytest.raises(IntegrityError, match=r"Lines 2 and 4 .* not a function of its input") as caught:
        Cassette.open(path)
    assert caught.value.exit_code == 4


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
        scorer, talker = cassette.recorder_score(MoodyScorer()), cassette.recorder_ask(MoodyTalker())

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
    assert cassette.player_score("scorer").score([clip("a")]) == [results[0][0]]
    assert cassette.player_ask("talker").ask([question("b")], Heard(), never) == [results[0][1]]


def test_many_threads(tmp_path: Path) -> None:
    clips = [clip("a" * size) for size in range(40)]
    with Cassette.open(tmp_path / "cassette") as cassette:
        model = cassette.recorder_score(Scorer())
        threads = [threading.Thread(target=model.score, args=(clips[at % 5 :],)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cassette.conflicts == 0
    assert len(records(tmp_path / "cassette")) == 40
    assert Cassette.open(tmp_path / "cassette").player_score("scorer").score(clips) == Scorer().score(clips)


def test_a_cancelled_reply_is_not_kept(tmp_path: Path) -> None:
    left = iter([False, False, True])
    asked = question("long story")
    with Cassette.open(tmp_path / "cassette") as cassette:
        model = cassette.recorder_ask(Talker({asked: "once upon"}))
        assert model.ask([asked], Heard(), lambda: next(left)) == ["on"]
        assert not (tmp_path / "cassette").exists()
        assert model.ask([asked], Heard(), never) == ["once upon"]
        heard = Heard()
        assert cassette.player_ask("talker", max_batch=2).ask([asked], heard, lambda: True) == ["once upon"]
        assert heard.pieces == {}


def test_a_model_that_forgets_an_answer(tmp_path: Path) -> None:
    class Forgetful(Scorer):
        def score(self, clips: Sequence[Clip]) -> Sequence[float]:
            return super().score(clips)[1:]

    with Cassette.open(tmp_path / "cassette") as cassette:
        with pytest.raises(CompassError, match="'scorer' gave 1 replies to 2 calls"):
            cassette.recorder_score(Forgetful()).score([clip("a"), clip("b")])
        assert not (tmp_path / "cassette").exists()


def test_cut_at_every_byte(tmp_path: Path) -> None:
    clips = [clip("a"), clip("bä")]
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        cassette.recorder_score(Scorer()).score(clips)
    data = path.read_bytes()
    for size in range(len(data) + 1):
        for tail in (b"", bytes(20)):
            path.write_bytes(data[:size] + tail)
            whole = data[:size].count(b"\n")
            torn = bool(tail) or not (size == 0 or data[size - 1] == ord("\n"))
            with Cassette.open(path) as cassette:
                assert bool(cassette.note) == torn
                assert path.read_bytes() == data[:size] + tail  # reading changes nothing
                scorer = Scorer()
                assert cassette.recorder_score(scorer).score(clips) == Scorer().score(clips)
                assert scorer.asked == clips[whole:]
            assert path.read_bytes() == data or whole == 2


def test_files_that_are_no_cassette(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    good = {"key": "k", "model": "m", "kind": "ask", "reply": "yes", "prompt": ""}
    for bad in (
        b"one line without an end",
        b"a line\n",
        b"[]\n",
        b"7\n",
        b"\n",
        *(json.dumps({**good, **wrong}).encode() + b"\n" for wrong in [
            {"kind": "score"}, {"kind": "sing"}, {"kind": []}, {"reply": 1}, {"reply": None}, {"key": 1}, {"model": None},
            {"kind": "score", "reply": True}, {"kind": "score", "reply": 10**400},
        ]),
    ):  # fmt: skip
        path.write_bytes(json.dumps(good).encode() + b"\n" + bad)
        with pytest.raises(IntegrityError, match=r"Line 2 of the cassette .* is not a recorded model call"):
            Cassette.open(path)
    path.write_bytes(b'{"key": "k", "model": "m", "kind": "score", "reply": 1}\n')  # by hand
    assert Cassette.open(path).find("score", "k") == 1.0
    for odd in (tmp_path, tmp_path / "z\0ero"):
        with pytest.raises(UsageError, match="cassette"):
            Cassette.open(odd)


LIMITED = """
import resource, sys
from compass_edge.loop.cassette import Cassette
from compass_edge.models import Clip
class Scorer:
    name, max_batch = "scorer", 1
    def score(self, clips): return [len(clip.sentence) / 7 for clip in clips]
resource.setrlimit(resource.RLIMIT_FSIZE, (1010, 1010))
said = []
with Cassette.open(sys.argv[1], warn=said.append) as cassette:
    model = cassette.recorder_score(Scorer())
    for size in range(30):
        assert model.score([Clip("a" * size, ())]) == [size / 7]
assert said == [cassette.failure], said
print(cassette.failure)
"""


def test_a_full_disk_stops_only_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    ran = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True)
    assert "has stopped" in ran.stdout
    cassette = Cassette.open(path)
    assert cassette.note
    assert cassette.player_score("scorer").score([clip("a")]) == [1 / 7]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with Cassette.open(tmp_path / "no" / "where") as cassette:
        assert cassette.recorder_score(Scorer()).score([clip("a")]) == [1 / 7]
        assert os.strerror(errno.ENOENT) in cassette.failure
