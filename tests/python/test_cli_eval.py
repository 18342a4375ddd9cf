"""`compass-edge eval` as a person and a script meet it, on a data set that is written here."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually
from report_dataset import write_dataset, write_episode
from test_cli import compass as in_a_process
from test_report_page import Page

from compass_edge.cli import main as command
from compass_edge.cli.eval_facts import data_hash
from compass_edge.cli.eval_models import PRESETS, choose_models
from compass_edge.cli.eval_selection import limited, parse_seeds, parse_tasks
from compass_edge.data.dataset import open_dataset
from compass_edge.errors import UsageError


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def compass(*arguments: str) -> Done:
    """In this process: a start takes longer than most of these evaluations."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as error,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["compass-edge", *arguments])
        try:
            code = command.main(arguments)
        except SystemExit as left:  # argparse
            code = int(left.code or 0)
    return Done(code, out.getvalue(), error.getvalue())


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def report(dataset: Path, cache: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Page]:
    out = tmp_path_factory.mktemp("report")
    done = compass("eval", str(dataset), "--ablation", "--jobs", "1", "--cache", cache, "--report", str(out), "--json",
                   "--models", "oracle:beta=0.5,gamma=0.3,early=0.6,bias=-0.1")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout), Page((out / "index.html").read_text("utf-8"))


def test_perfect_oracles_are_nearly_perfect(dataset: Path, cache: str) -> None:
    done = compass("eval", str(dataset), "--cache", cache, "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    line = next(line for line in done.stdout.splitlines() if line.startswith("compass "))
    loop = [float(number) for number in line.split()[1:]]
    assert len(loop) == 8
    assert all(mae < 8 for mae in loop[:4])  # films of seven seconds: a tick is a large part of a step
    assert all(rho > 0.97 for rho in loop[4:])
    assert "0 of 6 stalled" in done.stdout
    assert "holds for every task" in done.stdout
    assert "negatives: mean deviation" in done.stdout
    assert "tau:" not in done.stdout


def test_json_has_the_whole(report: tuple[dict[str, Any], Page]) -> None:
    data, _ = report
    assert [method["name"] for method in data["methods"]] == [
        "oracle-prm, without context", "oracle-prm, oracle context", "oracle-prm, self-chained", "compass",
    ]  # fmt: skip
    assert {key for method in data["methods"] for key in method["cells"]} == {
        "state",
        "sequence",
        "recurrence",
        "overall",
    }
    assert [row["intervals"] for row in data["gap"]] == [2 * (2 + 3 + 4)]
    assert [variant["tau"] for variant in data["ablation"]] == ["everywhere", "orienter", "nowhere"]
    assert {kind for line in data["deviations"] for kind in line["kinds"]} == {"early_stop", "extra_steps", "mismatch"}
    assert data["confusion"]["false_accepts"] + data["confusion"]["true_rejects"] > 0
    assert [line["task"] for line in data["bounds"]] == ["Q1", "R1", "S1", ""]
    assert all(line["bound_holds"] for line in data["bounds"])
    assert len(data["latencies"]) == 6
    assert len(data["episodes"]) == 6 * 4
    assert data["facts"]["Command"]["command line"].startswith("compass-edge eval ")
    assert "beta=0.5" in data["facts"]["Models"]["verifier"]
    assert data["failures"] == []
    assert (data["floors"], data["bounds"][0]["floor"]) == ([], None)  # nothing tells what can be seen


def test_the_page_shows_the_numbers_of_the_json(report: tuple[dict[str, Any], Page]) -> None:
    data, page = report
    shown = {section: {value for value, _ in values} for section, values in page.values.items()}
    for method in data["methods"]:
        assert {method["cells"]["overall"][key]["value"] for key in ("mae", "rho", "end_error")} <= shown["forms"]
    for row in data["gap"]:
        assert {
            row[key][metric]["value"] for key in ("without", "oracle", "chained") for metric in ("mae", "rho")
        } <= shown["gap"]
    for variant in data["ablation"]:
        assert variant["cells"]["overall"]["end_error"]["value"] in shown["ablation"]
    for line in data["deviations"]:
        assert {kind["deviation"]["value"] for kind in line["kinds"].values()} <= shown["negatives"]
    for line in data["bounds"]:
        assert {line["eta"], line["lam"], line["bound"], line["bound_error"]} <= shown["theorem"]
    assert {float(data["confusion"][key]) for key in ("true_accepts", "false_accepts")} <= shown["verifier"]
    assert "oracles: they know the annotation" in page.text("headline")
    assert data["facts"]["Data"]["hash"] in page.text("run")
    assert "--tasks" in page.text("floor")


def test_damage_is_found_again(report: tuple[dict[str, Any], Page]) -> None:
    """A biased model errs by its bias, within a step: 0.1 of the step, about."""
    data, _ = report
    last = data["bounds"][-1]
    assert 0.03 < last["lam"] < 0.2
    assert last["gamma"] > 0
    assert last["beta"] > 0


def test_the_same_again_comes_from_the_cache(dataset: Path, cache: str) -> None:
    first = json.loads(compass("eval", str(dataset), "--cache", cache, "--json", "--jobs", "1").stdout)
    again = json.loads(compass("eval", str(dataset), "--cache", cache, "--json", "--jobs", "9").stdout)
    assert again["cached"] == 2 * 9
    assert again["methods"] == first["methods"]
    other = json.loads(compass("eval", str(dataset), "--cache", cache, "--json", "--jobs", "1", "--every", "9").stdout)
    assert other["cached"] == 0
    assert other["methods"] != first["methods"]


def test_two_processes_give_the_same_as_one(dataset: Path, cache: str, tmp_path: Path) -> None:
    one = json.loads(compass("eval", str(dataset / "S1"), "--cache", cache, "--json", "--jobs", "1").stdout)
    done = in_a_process("eval", str(dataset / "S1"), "--cache", str(tmp_path), "--json", "--jobs", "2")
    assert (done.returncode, done.stderr) == (0, "")
    two = json.loads(done.stdout)
    assert two["cached"] == 0
    assert two["methods"] == one["methods"]


def test_executors_agree(dataset: Path, tmp_path: Path) -> None:
    """The same curves, so the same numbers; latency aside."""
    found = []
    for executor in ("sequential", "overlapped"):
        done = compass(
            "eval", str(dataset / "R1"), "--cache", str(tmp_path / executor), "--json", "--executor", executor
        )
        found.append(json.loads(done.stdout)["methods"])
    assert found[0] == found[1]


def test_an_interruption_costs_nothing_that_was_done(dataset: Path, tmp_path: Path) -> None:
    """Ctrl-C when the first results are there and the next one is under way."""
    command = [sys.executable, "-c", _SLOW, "eval", str(dataset), "--cache", str(tmp_path), "--jobs", "1", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    results = tmp_path / "results"
    assert eventually(lambda: (results / "hanging").exists() or process.poll() is not None, 120)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), error
    kept = len(list(results.glob("*.npz")))
    assert kept == 3
    assert f"3 of 18 runs are done and kept in '{tmp_path}'; the same command goes on there" in error
    assert "Traceback" not in error
    done = compass("eval", str(dataset), "--cache", str(tmp_path), "--jobs", "1", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["cached"] == kept
    assert len(list(results.glob("*.npz"))) == 18


# The command line with a model that hangs once three results are there.
_SLOW = """
import pathlib, sys, time
from compass_edge.eval.oracle import OraclePrm
score, results = OraclePrm.score, pathlib.Path(sys.argv[sys.argv.index("--cache") + 1], "results")
def hang(self, clips):
    if len(list(results.glob("*.npz"))) >= 3:
        (results / "hanging").touch()
        time.sleep(300)
    return score(self, clips)
OraclePrm.score = hang
from compass_edge.cli.main import main
sys.exit(main())
"""


def test_what_fails_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "data", episodes=1, negatives=False)
    (root / "R1" / "0.mp4").write_bytes((root / "R1" / "0.mp4").read_bytes()[:900])
    done = compass("eval", str(root), "--cache", str(tmp_path / "cache"), "--jobs", "1")
    assert done.returncode in (1, 4)
    assert "R1" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_settings_and_limit(dataset: Path, cache: str, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"candidate": {"high": 0.8}}))
    done = compass(
        "eval", str(dataset), "--cache", cache, "--settings", str(settings), "--limit", "4", "--json", "--jobs", "1"
    )
    data = json.loads(done.stdout)
    assert "high 0.8" in data["facts"]["Settings"]["candidate"]
    assert data["facts"]["Settings"]["every"] == "3"  # a third of a second at 10 a second
    assert data["facts"]["Data"]["tasks"] == "4"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "Name data sets, or tasks of the simulator with --tasks"),
        (("--seeds", "0-4"), "--seeds are seeds of tasks: say which with --tasks"),
        (("nowhere",), "There is nothing at 'nowhere'"),
        (("DATA", "DATA"), "is both in"),
        (("DATA", "--models", "huge"), "There are no models 'huge'. There are: oracle, tiny."),
        (("DATA", "--models", "tiny:seed=1"), "have no option 'seed'. There are: none."),
        (("DATA", "--live"), "--live is a part of a suite: say --suite sim too."),
        (("DATA", "--suite", "sim", "--models", "oracle"), "--suite names its own episodes"),
        (("DATA", "--models", "oracle:zeta=1"), "have no option 'zeta'. There are: beta, gamma"),
        (("DATA", "--models", "oracle:beta=1.5"), "'beta' must be a number from 0 to 1, and '1.5' came"),
        (("DATA", "--models", "oracle:beta"), "'beta' must be a number from 0 to 1, and '' came"),
        (("DATA", "--report", "FILE"), "The report needs a directory, and"),
        (("DATA", "--cache", "FILE"), "cannot be made"),
        (("DATA", "--settings", "FILE"), "must be a readable JSON file"),
        (("DATA", "--every", "0"), "expected a whole number of at least 1, got 0"),
        (("BARE",), "it is missing in 1 episode ('V/0'). Mark the steps with compass-edge data annotate"),
    ],
)
def test_errors_are_a_sentence(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], part: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "file").write_text("x")
    if "BARE" in arguments:
        write_episode(tmp_path / "bare", "V", 0, None)
    names = {"DATA": str(dataset), "FILE": str(tmp_path / "file"), "BARE": str(tmp_path / "bare")}
    done = compass("eval", *(names.get(one, one) for one in arguments))
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_seeds() -> None:
    assert parse_seeds("0-4") == [0, 1, 2, 3, 4]
    assert parse_seeds("3") == [3]
    assert parse_seeds("0-2, 7,1") == [0, 1, 2, 7]
    for wrong in ("", "a", "-1", "1-", "4-0", "0-200000", "1;2", "0.5", "1--2"):
        with pytest.raises(UsageError, match="--seeds"):
            parse_seeds(wrong)


def test_tasks() -> None:
    known = [("S1", "state"), ("Q1", "sequence"), ("R1", "recurrence"), ("R2", "recurrence"), ("E1", "")]
    assert parse_tasks("all", known) == ["S1", "Q1", "R1", "R2"]
    assert parse_tasks("recurrence,s1,R1", known) == ["R1", "R2", "S1"]
    assert parse_tasks("E1", known) == ["E1"]
    with pytest.raises(UsageError, match=r"no task 'T1'\. There are: S1, Q1, R1, R2, E1; and all, state"):
        parse_tasks("S1,T1", known)


def test_a_limit_is_spread_over_the_tasks(dataset: Path) -> None:
    episodes = list(open_dataset(dataset).episodes())
    assert {one.task for one in limited(episodes, 6)} == {"S1", "Q1", "R1", "E1", "X1", "M1"}
    assert len(limited(episodes, 2)) == 2
    assert limited(episodes, None) == episodes
    assert limited(episodes, 99) == episodes


def test_the_hash_is_of_films_and_annotation(dataset: Path, report: tuple[dict[str, Any], Page]) -> None:
    episodes = list(open_dataset(dataset).episodes())
    known = data_hash(episodes)
    assert report[0]["facts"]["Data"]["hash"] == known == data_hash(episodes[::-1])
    steps = episodes[0].truth
    changed = [replace(episodes[0], steps=(replace(steps[0], end=steps[0].end + 1), *steps[1:])), *episodes[1:]]
    for other in (changed, episodes[1:], [replace(episodes[0], instruction="other"), *episodes[1:]]):
        assert data_hash(other) != known


def test_every_preset_has_its_defaults() -> None:
    for name in PRESETS:
        assert choose_models(name)[1] == PRESETS[name].options


def test_help_teaches() -> None:
    done = in_a_process("eval", "--help")
    assert done.returncode == 0
    for word in ("--tasks", "--seeds", "oracle:beta=0.1", "--report", "goes on where it was"):
        assert word in done.stdout
    assert all(len(line) <= 130 for line in done.stdout.splitlines())
