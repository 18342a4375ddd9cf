"""The file of a cassette: whatever is cut, foreign or full, it holds whole calls, or says what is wrong with it."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cassette_samples import Heard, Scorer, Talker, clip, never, question, records

from compass_edge.errors import IntegrityError, UsageError
from compass_edge.loop.cassette import Cassette
from compass_edge.loop.cassette_models import AskRecorder, ScorePlayer, ScoreRecorder


def test_a_person_can_read_it(tmp_path: Path) -> None:
    with Cassette.open(tmp_path / "cassette") as cassette:
        ScoreRecorder(cassette, Scorer()).score([clip("把杯子\n放好", "1")])
        AskRecorder(cassette, Talker({question("rules " * 50 + "cup?"): "yes"})).ask(
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


def test_two_answers_to_one_call_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        ScoreRecorder(cassette, Scorer()).score([clip("a"), clip("b")])
        ScoreRecorder(cassette, Scorer({clip("nan"): math.nan})).score([clip("nan")])
    data = path.read_bytes()
    path.write_bytes(data + data)  # two recordings in one file
    assert ScorePlayer(Cassette.open(path), "scorer").score([clip("b")]) == [1 / 7]
    other = records(path)[1] | {"reply": 0.5}
    path.write_bytes(data + json.dumps(other).encode() + b"\n")
    with pytest.raises(IntegrityError, match=r"Lines 2 and 4 .* not a function of its input") as caught:
        Cassette.open(path)
    assert caught.value.exit_code == 4


def test_cut_at_every_byte(tmp_path: Path) -> None:
    clips = [clip("a"), clip("bä")]
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        ScoreRecorder(cassette, Scorer()).score(clips)
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
                assert ScoreRecorder(cassette, scorer).score(clips) == Scorer().score(clips)
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
from compass_edge.loop.cassette_models import ScoreRecorder
from compass_edge.models import Clip
class Scorer:
    name, max_batch = "scorer", 1
    def score(self, clips): return [len(clip.sentence) / 7 for clip in clips]
resource.setrlimit(resource.RLIMIT_FSIZE, (1010, 1010))
said = []
with Cassette.open(sys.argv[1], warn=said.append) as cassette:
    model = ScoreRecorder(cassette, Scorer())
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
    assert ScorePlayer(cassette, "scorer").score([clip("a")]) == [1 / 7]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with Cassette.open(tmp_path / "no" / "where") as cassette:
        assert ScoreRecorder(cassette, Scorer()).score([clip("a")]) == [1 / 7]
        assert os.strerror(errno.ENOENT) in cassette.failure


def test_it_stops_before_it_outgrows_its_limit(tmp_path: Path) -> None:
    clips = [clip("a" * size) for size in range(9)]
    with Cassette.open(tmp_path / "whole") as cassette:
        ScoreRecorder(cassette, Scorer()).score(clips)
    data = (tmp_path / "whole").read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    for limit in (0, ends[3] - 1, ends[3], len(data)):
        path, said = tmp_path / f"cassette{limit}", list[str]()
        with Cassette.open(path, warn=said.append, max_bytes=limit) as cassette:
            assert ScoreRecorder(cassette, Scorer()).score(clips) == Scorer().score(clips)
        assert path.read_bytes() == data[: max((end for end in ends if end <= limit), default=0)]
        assert said == ([cassette.failure] if limit < len(data) else [])
        assert limit == len(data) or f"larger than {limit} bytes" in cassette.failure


def test_the_limit_holds_for_what_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "cassette"
    with Cassette.open(path) as cassette:
        ScoreRecorder(cassette, Scorer()).score([clip("a")])
    data = path.read_bytes()
    path.write_bytes(data + b'{"key": "torn')
    with Cassette.open(path, max_bytes=2 * len(data)) as cassette:
        ScoreRecorder(cassette, Scorer()).score([clip("b"), clip("c")])
        assert cassette.failure
    assert len(records(path)) == 2


def test_what_is_not_on_the_file_is_not_in_memory_either(tmp_path: Path) -> None:
    scorer, talker = Scorer(), Talker()
    with Cassette.open(tmp_path / "cassette", max_bytes=0) as cassette:
        for _ in range(2):
            ScoreRecorder(cassette, scorer).score([clip("a"), clip("a")])
            AskRecorder(cassette, talker).ask([question("b"), question("b")], Heard(), never)
        assert cassette.find("score", clip("a").digest("scorer")) is None
    assert (len(scorer.asked), len(talker.asked)) == (2, 2)  # asked again
