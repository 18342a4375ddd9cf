"""`compass-edge run VIDEO`: what it prints, what it leaves on disk, what Ctrl-C and a live source do to it."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Sender
from oracle_preset import KNOWS, ORACLES, bundled, models
from test_run_cli import events_after, lines_of

from compass_edge.cli.main import main
from compass_edge.data.bundled import BUNDLED
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.metrics import mean_absolute_error
from compass_edge.loop.call import Models
from compass_edge.loop.events import Event, Gap, to_dict
from compass_edge.loop.recording import read_journal
from compass_edge.presets import registry

FILM = str(BUNDLED / "R1" / "0.mp4")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`compass-edge run` with oracles for models, in this process."""
    monkeypatch.setitem(registry.PRESETS, "tiny", ORACLES)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["run", *arguments])
        return (code, *capsys.readouterr())

    return call


def reference() -> list[dict[str, Any]]:
    told: list[Event] = []
    run_loop(bundled(), models(), subscribers=(lambda event, state: told.append(event),))
    expected = json.loads(json.dumps([to_dict(event) for event in told]))
    del expected[0]["source"]
    return list(expected)


@pytest.mark.parametrize("executor", [None, "overlapped", "pool"])
def test_the_events_are_those_of_the_evaluation(run: Run, executor: str | None) -> None:
    code, out, err = run(FILM, "--json", *(["--executor", executor] if executor else []))
    assert (code, err) == (0, "")
    lines = lines_of(out)
    told = [{key: value for key, value in line.items() if key != "t"} for line in lines if "event" in line]
    assert told[0].pop("source").startswith("film:R1/0@")
    assert told == reference()
    summary = lines[-1]["summary"]
    assert (summary["outcome"], summary["value"], summary["accepted"]) == ("done", 100, 5)
    assert [step["satisfied"] for step in summary["plan"]] == [True] * 5
    right = mean_absolute_error(run_loop(bundled(), models()).values, bundled().progress())
    assert summary["error"] == pytest.approx(right)
    assert summary["speed"] == pytest.approx(summary["footage_s"] / summary["computing_s"])
    assert summary["age_s"] is None
    assert (summary["speculation"] is None) == (executor is None)


def test_a_log_ends_with_plan_speed_and_error(run: Run) -> None:
    code, out, _ = run("bundled", "--episode", "S1/0")
    assert code == 0
    assert "outcome     done: every step verified, the plan reviewed" in out
    assert "plan         1     6.3 s  Move the red block from the front right purple mat onto the white mat." in out
    assert "s of computing: " in out
    assert "of 100, mean absolute, against the annotation" in out


def test_in_real_time_the_events_are_the_same_and_the_progress_has_an_age(run: Run, tmp_path: Path) -> None:
    code, out, err = run(FILM, "--realtime", "--json", "--report", str(tmp_path / "page"))
    assert (code, err) == (0, "")
    lines = lines_of(out)
    kinds = [
        {key: line[key] for key in ("event", "score", "accepted") if key in line} for line in lines if "event" in line
    ]
    assert kinds == [{key: line[key] for key in ("event", "score", "accepted") if key in line} for line in reference()]
    summary = lines[-1]["summary"]
    assert 0 < summary["age_s"]["median"] <= summary["age_s"]["p95"]
    assert lines[-1]["t"] > 12  # it was not read faster than it was shot
    assert (tmp_path / "page" / "index.html").exists()


def test_a_plain_video_needs_a_task(run: Run, tmp_path: Path) -> None:
    plain = tmp_path / "take.bin"  # whatever it is called
    shutil.copyfile(FILM, plain)
    code, _, err = run(str(plain))
    assert code == 2
    assert "say the task with --task" in err
    code, out, _ = run(str(plain), "--task", bundled().instruction, "--json")
    summary = lines_of(out)[-1]["summary"]
    assert (code, summary["outcome"], summary["error"]) == (
        0,
        "done",
        None,
    )  # the same pictures, and nobody's annotation


def test_what_the_models_do_not_know_is_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = replace(bundled(), steps=())  # nothing of the instruction is there
    preset = replace(ORACLES, models=lambda threads: models(threads, [unknown]))
    monkeypatch.setitem(registry.PRESETS, "tiny", preset)
    code, out, err = run(FILM)
    assert (code, err) == (0, "")
    assert "outcome     ungrounded: the objects of the instruction were never there" in out
    assert "progress    0.0, verified 0.0" in out
    assert f"note        {KNOWS}" in out


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("no/such.mp4",), "There is nothing at 'no/such.mp4'"),
        (("bundled",), "has 3 episodes: choose one with --episode ID"),
        (("bundled", "--episode", "X9/0"), "There is no episode 'X9/0'"),
        ((FILM, "--preset", "huge"), "There is no preset 'huge'"),
        ((FILM, "--scripted", "stall"), "and both came"),
        ((FILM, "--board", "thor"), "--board goes with --scripted"),
        ((FILM, "--speed", "max"), "--speed goes with --scripted"),
        (("--scripted", "stall", "--realtime"), "--realtime goes with a VIDEO"),
        ((FILM, "--resume"), "Name it with --journal"),
        ((FILM, "--report", FILM), "The page needs a directory"),
        (("rtsp://camera/stream",), "say the task with --task"),
        ((FILM, "--play", "no.tape"), "There is no cassette"),
    ],
)
def test_wrong_usage_gets_a_sentence(run: Run, arguments: tuple[str, ...], part: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert part in err


def test_settings_of_a_file_go_before_the_presets(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"every": 5, "candidate": {"high": 0.8}}')
    told = lines_of(run(FILM, "--settings", str(path), "--tau", "orienter", "--json")[1])[0]["settings"]
    assert (told["every"], told["candidate"]["high"], told["tau"]) == (5, 0.8, "orienter")
    told = lines_of(run(FILM, "--json")[1])[0]["settings"]
    assert (told["every"], told["tau"]) == (3, "everywhere")  # three a second of a film of 10


def test_a_file_that_is_no_video_gets_a_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.mp4").write_text("nothing")
    code, _, err = run(str(tmp_path / "notes.mp4"), "--task", "Do it.")
    assert code == 4
    assert "should be a video" in err


def test_a_cassette_stands_in_for_the_models(run: Run, tmp_path: Path) -> None:
    tape = str(tmp_path / "run.tape")
    first = lines_of(run(FILM, "--record", tape, "--json")[1])
    second = lines_of(run(FILM, "--play", tape, "--json")[1])
    events = [[{**line, "t": 0} for line in lines if "event" in line] for lines in (first, second)]
    assert events[0] == events[1]


def test_ctrl_c_loses_nothing_and_the_run_goes_on(run: Run, tmp_path: Path) -> None:
    path, page = tmp_path / "run.journal", tmp_path / "page"
    command = [sys.executable, str(Path(__file__).with_name("oracle_preset.py")), "run", FILM]
    command += ["--journal", str(path), "--report", str(page)]
    slow = {**os.environ, "COMPASS_EDGE_SLOW": "0.05"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=slow) as process:
        events_after(process, path, 40)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"outcome     stopped" in out
    assert f"Go on with --journal {path} --resume".encode() in err
    assert "stopped: by you" in (page / "index.html").read_text()
    cut = read_journal(path)
    assert 40 <= len(cut.events) < len(reference())
    code, resumed, _ = run(FILM, "--journal", str(path), "--resume", "--json", "--report", str(page))
    assert code == 0
    summary = lines_of(resumed)[-1]["summary"]
    assert (summary["outcome"], summary["accepted"]) == ("done", 5)
    whole = json.loads(json.dumps([to_dict(event) for event in read_journal(path).events]))
    assert whole[1:] == reference()[1:]
    assert (page / "index.html").read_text().count("not kept") == 0  # pictures of before were read from the film
    code, _, err = run(FILM, "--journal", str(path), "--resume", "--task", "Something else.")
    assert code == 2
    assert "began with the task 'Press the yellow button 5 times.'" in err


@dataclass(frozen=True)
class Seer:
    """Says of any picture that the objects are there, and of any step that it is not done yet."""

    name: str = "seer"
    max_batch: int = 1

    def score(self, clips: Sequence[Any]) -> list[float]:
        return [0.3 for _ in clips]

    def ask(self, questions: Sequence[Any], _on_text: Any, _cancelled: Any) -> list[str]:
        plan = [{"outcome": "the cup is there", "criterion": "a cup", "times": 1}]
        step = {"subtask": "Put the cup there.", "before": "no cup", "tau": "it comes", "after": "a cup"}
        answer = {"objects": [{"name": "cup", "count": 1}], "grounded": True, "plan": plan, **step}
        return [json.dumps({**answer, "completion": "lasting"}) for _ in questions]


def test_a_stream_is_followed_until_ctrl_c_and_goes_on_after_it(
    run: Run, sender: Callable[..., Sender], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(ORACLES, models=lambda threads: Models(Seer(), Seer(), Seer()))
    monkeypatch.setitem(registry.PRESETS, "tiny", preset)
    scored = 0

    def pressed(report: Any, event: Event, *rest: Any) -> None:
        nonlocal scored
        tell(report, event, *rest)
        scored += type(event).__name__ == "FrameScored"
        if scored == 2:
            os.kill(os.getpid(), signal.SIGINT)

    from compass_edge.cli.report import JsonLines

    tell = JsonLines.event
    monkeypatch.setattr(JsonLines, "event", pressed)
    path = tmp_path / "run.journal"
    arguments = ("--task", "Put the cup there.", "--json", "--journal", str(path), "--report", str(tmp_path / "page"))
    code, out, _ = run(sender().url, *arguments)
    assert code == 1
    assert lines_of(out)[-1]["summary"]["outcome"] == "stopped"
    assert "There is no film of this run" in (tmp_path / "page" / "index.html").read_text()
    first = read_journal(path).events
    url = first[0].source.removeprefix("live:")  # type: ignore[union-attr]
    assert url.startswith("tcp://127.0.0.1:")
    scored = 0
    gc.collect()  # the sender serves one connection after the other
    code, out, err = run(url, *arguments, "--resume")
    later = read_journal(path).events[len(first) :]
    assert code == 1, err
    assert isinstance(later[0], Gap)
    assert later[0].restart
