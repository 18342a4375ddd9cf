"""Replay: a run again from its journal, and what a tamperer gets."""

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from test_cli import compass
from test_run_cli import lines_of, run
from test_scenarios import reference

from compass_edge.errors import IntegrityError
from compass_edge.loop.events import Event, FrameScored, Oriented, Verified
from compass_edge.loop.journal import Journal
from compass_edge.loop.replay import checked
from compass_edge.scripted.scenario import built_in


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
