"""`run` and `replay`: what they print, what they leave on disk, and what a kill, a tamperer or a narrow terminal does to them."""

import contextlib
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
import zlib
from dataclasses import replace
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest
from test_cli import compass
from test_scenarios import reference

from compass_edge.cli.view import ASCII, Glyphs, Snapshot, Verdict, columns, draw
from compass_edge.errors import IntegrityError
from compass_edge.loop.events import Event, FrameScored, Oriented, Verified, to_dict
from compass_edge.loop.journal import Journal
from compass_edge.loop.memo import Speculation
from compass_edge.loop.progress import progress_of
from compass_edge.loop.recording import read_journal
from compass_edge.loop.replay import checked
from compass_edge.loop.state import fold
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
        (("run",), "Models for live use come with the engines"),
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


def test_replay_gives_what_the_run_gave(tmp_path: Path) -> None:
    journal = str(tmp_path / "run.journal")
    command = ("--scripted", "omitted-step", "--executor", "sequential", "--journal", journal, "--json")
    ran = lines_of(run(*command).stdout)
    done = compass("replay", journal, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    replayed = lines_of(done.stdout)
    assert [line for line in replayed if "event" in line] == [line for line in ran if "event" in line]
    assert [line for line in replayed if "progress" in line] == [line for line in ran if "progress" in line]
    absent = {"speculation": None, "lanes": None, "latencies": "", "unexpected": None}
    assert replayed[-1] == {**ran[-1], "summary": {**ran[-1]["summary"], **absent}}
    assert "accepted    1 x close tap done" in compass("replay", journal, "--speed", "1000").stdout


def test_replay_prints_the_curve(tmp_path: Path) -> None:
    journal = str(tmp_path / "run.journal")
    run("--scripted", "replan", "--journal", journal)
    points = json.loads(compass("replay", journal, "--curve", "json").stdout)
    rows = compass("replay", journal, "--curve", "csv").stdout.splitlines()
    assert rows[0] == "frame,live,rebased,step"
    assert len(rows) - 1 == len(points) > 40
    assert rows[-1] == "450,99.250,100.000,3"
    assert points[-1]["rebased"] == 100


def record(path: Path, events: list[Event]) -> None:
    with Journal.create(path, clock=lambda: 0) as journal:
        for event in events:
            journal.append(event)


def test_a_torn_tail_is_left_out_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    record(path, reference("sequence"))
    path.write_bytes(path.read_bytes()[:-5])
    done = compass("replay", str(path))
    assert done.returncode == 0
    assert "are not a whole record and were left out" in done.stderr
    assert "not ended: the run was cut off and can be resumed" in done.stdout


def tampered(events: list[Event]) -> dict[str, list[Event]]:
    at = next(at for at, event in enumerate(events) if isinstance(event, Verified))
    first = next(at for at, event in enumerate(events) if isinstance(event, FrameScored))
    oriented = events[1]
    assert isinstance(oriented, Oriented)
    assert oriented.plan is not None
    done = replace(oriented.plan, steps=tuple(replace(step, satisfied=True) for step in oriented.plan.steps))
    scored = events[first]
    assert isinstance(scored, FrameScored)
    return {
        "swapped": [*events[: at - 1], events[at], events[at - 1], *events[at + 1 :]],
        "missing": [*events[:at], *events[at + 1 :]],
        "twice": [*events[: at + 1], *events[at:]],
        "headless": events[1:],
        "after the end": [*events, events[-1]],
        "a plan that is done": [events[0], replace(oriented, plan=done), *events[2:]],
        "no score": [*events[:first], replace(scored, score="high"), *events[first + 1 :]],  # type: ignore[arg-type]
        "an earlier frame": [*events[: first + 1], *events[first:]],
    }


@pytest.mark.parametrize("how", tampered(reference("sequence")))
def test_what_the_rules_do_not_allow_is_not_replayed(how: str) -> None:
    with pytest.raises(IntegrityError, match=r"^Record \d+ \("):
        list(checked(tampered(reference("sequence"))[how]))


@pytest.mark.parametrize("name", built_in())
def test_what_a_run_gives_the_rules_allow(name: str) -> None:
    assert [event for event, _ in checked(reference(name))] == reference(name)


def test_a_tampered_journal_exits_with_4(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    record(path, tampered(reference("sequence"))["swapped"])
    done = compass("replay", str(path))
    assert done.returncode == 4
    assert f"of the journal '{path}' (Verified) cannot come there: the Navigator's decision" in done.stderr
    head, *lines = path.read_bytes().splitlines(keepends=True)
    body = lines[3][9:-1].replace(b'"event"', b'"evnt"')
    path.write_bytes(b"".join([head, *lines[:3], b"%08x %s\n" % (zlib.crc32(body), body), *lines[4:]]))
    assert compass("replay", str(path)).returncode == 4


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
        "began with --tau everywhere"
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


def in_a_terminal(size: tuple[int, int], *arguments: str, interrupt_at: bytes = b"") -> tuple[str, int]:
    """What a terminal of that size is sent."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    command = [sys.executable, "-m", "compass_edge.cli.main", *arguments]
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    sent = b""
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # Linux says so when the other side is closed
            while piece := os.read(ours, 65536):
                sent += piece
                if interrupt_at and interrupt_at in sent:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = b""
    os.close(ours)
    return sent.decode(), process.returncode


@pytest.mark.parametrize("size", [(100, 40), (24, 8)])
def test_the_terminal_is_drawn_in_place_and_given_back(size: tuple[int, int]) -> None:
    sent, code = in_a_terminal(size, "run", "--scripted", "sequence", "--speed", "40")
    assert code == 0
    pictures, _, rest = sent.rpartition("\x1b[J")
    assert rest.index("outcome     done") < rest.index("\x1b[?7h\x1b[?25h")  # line wrapping and the cursor are back
    drawn = pictures.split("\x1b[J")
    assert len(drawn) > 5
    assert "DONE" in drawn[-1] or size[1] < 10
    for picture in drawn[1:]:
        lines = picture.rpartition("F")[2].replace("\x1b[K", "").split("\r\n")
        assert len(lines) <= size[1]
        assert all(columns(line) < size[0] for line in lines)


def test_ctrl_c_gives_the_terminal_back() -> None:
    sent, code = in_a_terminal((80, 30), "run", "--scripted", "stall", "--speed", "4", interrupt_at=b"TRACKING")
    assert code == 1
    assert "outcome     stopped" in sent
    assert "\x1b[?25h" in sent.rpartition("\x1b[?25l")[2]


def picture(
    events: list[Event], width: int, height: int | None = None, glyphs: Glyphs | None = None, **more: Any
) -> str:
    state = fold(events)
    shot = Snapshot("sequence, overlapped", state, progress_of(state), 12_300_000_000, **more)
    lines = draw(shot, width, height, glyphs) if glyphs else draw(shot, width, height)
    assert all(columns(line) <= width for line in lines)
    return "\n".join(lines) + "\n"


def test_the_view_before_there_is_a_plan() -> None:
    assert picture(reference("sequence")[:1], 50) == (
        "sequence, overlapped                        12.3 s\n"
        "Put the red, then the blue, then the clear tube\n"
        "into the rack.\n"
        "\n"
        "· no plan yet\n"
        "\n"
        "───────────────────────────────────────────    0.0\n"
        "ORIENTING   frame 0, 12.3 s old\n"
        "verified 0.0, step 0 of 0, plan revision 0\n"
    )


def test_the_view_of_a_step_in_flight() -> None:
    told = (Verdict(1, True, "the rack holds a red tube", "done: it moved"), Verdict(2, False, "a hand", "uncertain"))
    lanes = {"orienter": False, "prm": True, "verifier": False}
    seen = picture(
        reference("sequence")[:29], 60, verdicts=told, lanes=lanes, speculation=Speculation(5, 3, 1, 0, 25 * 10**8)
    )
    assert seen == (
        "sequence, overlapped                                  12.3 s\n"
        "Put the red, then the blue, then the clear tube into the\n"
        "rack.\n"
        "\n"
        "✓  1  the red tube is in the rack\n"
        "▶  2  the blue tube is in the rack\n"
        "      Lift the blue tube from the table and set it into the…\n"
        "      τ the rack goes from one tube to two\n"
        "      lasting, since frame 150, 0 of 8 verifications used\n"
        "·  3  the clear tube is in the rack\n"
        "\n"
        "██████████████████▒▒▒▒▒▒▒────────────────────────────   47.4\n"
        "TRACKING    frame 220, 5.0 s old\n"
        "verified 33.3, step 2 of 3, plan revision 1\n"
        "\n"
        "O ○ idle   P ● busy   V ○ idle\n"
        "5 asked early, 3 used, 1 wasted, 2.5 s of waiting saved\n"
        "\n"
        "V ✓  1  the rack holds a red tube\n"
        "        done: it moved\n"
        "V ✗  2  a hand\n"
        "        uncertain\n"
    )


def test_the_view_in_a_small_terminal_without_unicode() -> None:
    assert picture(reference("sequence")[:29], 34, 12, ASCII, verdicts=(Verdict(1, True, "x", "y"),)) == (
        "sequence, overlapped        12.3 s\n"
        "Put the red, then the blue, then\n"
        "the clear tube into the rack.\n"
        "\n"
        ">  2  the blue tube is in the rack\n"
        "      Lift the blue tube from the~\n"
        "      tau the rack goes from one ~\n"
        "      lasting, since frame 150, 0~\n"
        "\n"
        "#########////--------------   47.4\n"
        "TRACKING    frame 220, 5.0 s old\n"
        "verified 33.3, step 2 of 3, plan ~\n"
    )


def test_the_view_takes_wide_letters_and_any_size() -> None:
    events = reference("state-recall")
    state = replace(fold(events[:40]), instruction="把红色方块放到绿色垫子上然后放回原处" * 3 + "\x1b[2J\n")
    for width in (1, 2, 5, 9, 20, 33, 200):
        for height in (1, 3, 10, 30):
            told = (Verdict(1, True, "放回原处" * 20, "\x1b]0;title\x07"),) * 3
            shot = Snapshot("title " * 9, state, progress_of(state), 0, told, {"prm": True}, Speculation())
            lines = draw(shot, width, height)
            assert len(lines) <= height
            assert all(columns(line) <= width for line in lines)
            assert not any("\x1b" in line for line in lines)
