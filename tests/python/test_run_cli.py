"""`compass-edge run`: what it prints, what it leaves on disk, and what a kill does to it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_cli import compass
from test_scenarios import reference

from compass_edge.loop.events import to_dict
from compass_edge.loop.recording import read_journal
from compass_edge.scripted.scenario import FOLDER, built_in


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return compass("run", "--speed", "max", *arguments)


def test_the_list_has_a_line_for_each() -> None:
    listed = compass("run", "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == built_in()
    assert all(len(line) <= 100 and line.endswith((".", "?")) for line in listed)


@pytest.mark.parametrize("executor", ["overlapped", "sequential", "pool"])
def test_json_lines(executor: str) -> None:
    done = run("--scripted", "replan", "--executor", executor, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = lines_of(done.stdout)
    told = [{key: value for key, value in line.items() if key != "t"} for line in lines if "event" in line]
    expected = json.loads(json.dumps([to_dict(event) for event in reference("replan")]))
    assert told[0].pop("source").startswith("scripted:replan@")
    assert expected[0].pop("source") == ""
    assert told == expected
    summary = lines[-1]["summary"]
    assert summary["outcome"] == "done"
    assert [line["progress"]["value"] for line in lines if "progress" in line][-1] == summary["value"] == 100
    assert summary["unexpected"] == []
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    assert any(line.get("progress", {}).get("provisional") for line in lines) == (executor == "overlapped")
    assert (summary["speculation"] is None) == (executor == "sequential")


def test_a_log_has_a_line_for_each_event_of_note_and_a_summary() -> None:
    done = run("--scripted", "stall", "--board", "orin", "--tau", "orienter")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stdout.count("  rejected ") == 8
    assert "stalled     after 8 verifications; P goes on, V is not asked again" in done.stdout
    assert "outcome     stalled: a step was rejected too often" in done.stdout
    assert "latencies   orin, inferred from published rates, not measured by us" in done.stdout
    assert done.stdout.splitlines()[-1] == "expected    as the scenario says"


def test_a_scenario_of_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    values = json.loads((FOLDER / "sequence.json").read_text())
    mine.write_text(json.dumps({**values, "instruction": "Bell \x07 and escape \x1b[31m ✓", "latency": "orin"}))
    done = compass("run", "--scripted", str(mine), "--speed", "max", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "Bell   and escape  [31m ?" in done.stdout
    mine.write_text(json.dumps({**values, "plan": [1, 9]}))
    done = run("--scripted", str(mine))
    assert done.returncode == 2
    assert f"{mine}: plan[1] must be the id of a step" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("run",), "A run needs a VIDEO (with --task) or --scripted NAME"),
        (("run", "--scripted", "nope"), "There is no scenario 'nope'. There are: bad-replies, dropped-frames,"),
        (("run", "--scripted", "no/such.json"), "cannot be read: No such file"),
        (("run", "--scripted", "stall", "--speed", "0"), "expected a number above 0 or 'max', got 0"),
        (("run", "--scripted", "stall", "--resume"), "Name it with --journal"),
        (("run", "--scripted", "stall", "--play", "no.tape"), "There is no cassette"),
        (("run", "--scripted", "stall", "--play", "a", "--record", "b"), "Choose one"),
        (("run", "--scripted", "stall", "--journal", "no/such/place"), "cannot be opened"),
        (("replay", "no.journal"), "cannot be opened"),
    ],
)
def test_wrong_usage_gets_a_sentence(arguments: tuple[str, ...], part: str) -> None:
    done = compass(*arguments)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def events_after(process: subprocess.Popen[bytes], path: Path, wanted: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if path.exists() and len(path.read_bytes().splitlines()) > wanted:
            return
        time.sleep(0.005)
    raise AssertionError("the run did not get that far")


@pytest.mark.parametrize(
    ("how", "wanted"), [(signal.SIGKILL, 3), (signal.SIGKILL, 30), (signal.SIGINT, 20), (signal.SIGTERM, 9)]
)
def test_a_run_that_was_ended_goes_on(tmp_path: Path, how: signal.Signals, wanted: int) -> None:
    path = tmp_path / "run.journal"
    arguments = ["run", "--scripted", "state-recall", "--journal", str(path)]
    command = [sys.executable, "-m", "compass_edge.cli.main", *arguments, "--speed", "10"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        events_after(process, path, wanted)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
        if how is not signal.SIGKILL:
            assert process.returncode == 1
            assert b"outcome     stopped" in out
            assert f"Go on with --journal {path} --resume".encode() in err
    cut = read_journal(path)
    assert wanted <= len(cut.events) < len(reference("state-recall"))
    resumed = compass(*arguments, "--speed", "max", "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert lines_of(resumed.stdout)[-1]["summary"]["unexpected"] == []
    assert lines_of(resumed.stdout)[0]["t"] >= cut.at_ns[-1] / 1e9 - 1e-6
    whole = list(read_journal(path).events)
    assert whole[1:] == reference("state-recall")[1:]


def test_a_journal_goes_on_only_with_what_it_began_with(tmp_path: Path) -> None:
    path = str(tmp_path / "run.journal")
    assert run("--scripted", "sequence", "--journal", path, "--resume").returncode == 0  # there was none: it begins
    assert "already holds something" in run("--scripted", "sequence", "--journal", path).stderr
    other = run("--scripted", "stall", "--journal", path, "--resume")
    assert other.returncode == 2
    assert "Resume the scenario that it began with" in other.stderr
    assert (
        "tau everywhere (now nowhere)"
        in run("--scripted", "sequence", "--journal", path, "--resume", "--tau", "nowhere").stderr
    )
    again = run("--scripted", "sequence", "--journal", path, "--resume", "--json")
    assert len(lines_of(again.stdout)) == 1  # it has ended: the summary is all there is to say


def test_a_cassette_stands_in_for_the_models(tmp_path: Path) -> None:
    tape = str(tmp_path / "run.tape")
    first = run("--scripted", "sequence", "--record", tape, "--json")
    second = run("--scripted", "sequence", "--play", tape, "--json")
    assert first.stdout == second.stdout
    assert "no ask call" in run("--scripted", "replan", "--play", tape).stdout


def test_settings_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"candidate": {"high": 0.5, "hold": 1}}')  # too eager: V has more to do
    done = run("--scripted", "sequence", "--settings", str(path), "--json")
    lines = lines_of(done.stdout)
    assert lines[0]["settings"]["candidate"]["high"] == 0.5
    assert lines[0]["settings"]["candidate"]["drop"] == 0.2  # the rest stays as it is
    assert lines[-1]["summary"]["rejected"] > 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "must be a readable JSON file"),
        ("[]", "must be a JSON object"),
        ('{"candidate": 3}', "so must its candidate and middle"),
        ('{"candidate": {"hi": 1}}', "There is no setting 'candidate.hi'"),
        ('{"max_frames": 1}', "max_frames must be a whole number of at least 4"),
        ('{"every": 20}', "is every 10 frames, and 20 came"),
    ],
)
def test_wrong_settings_get_a_sentence(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    done = run("--scripted", "sequence", "--settings", str(path))
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
