"""`compass-edge eval --suite sim`: what it runs, the keys of its JSON, its page, and the models that come with the package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_cli_eval import compass
from test_report_page import Page

from compass_edge.cli.eval_models import PRESETS, _tiny_models, suite
from compass_edge.cli.eval_rendering import suite_names
from compass_edge.data.bundled import BUNDLED
from compass_edge.data.dataset import open_dataset
from compass_edge.eval.oracle import oracles
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings
from compass_edge.presets import tiny

pytest.importorskip("mujoco")

KEYS = [
    "mae_without", "mae_oracle", "mae_self_chained", "mae_loop", "rho_without", "rho_loop", "gap_closed", "verifier_accuracy",
    "verifier_false_accept", "orienter_plan_exact", "prm_local_mae", "prm_blind_mae", "prm_wrong_sentence", "early_stop",
    "extra_steps", "mismatch", "stalled", "realtime_factor",
]  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Nothing has to be rendered for the first episode."""
    shutil.copytree(BUNDLED / "S1", tmp_path / "sim-448" / "S1")
    return tmp_path


def test_the_suite_is_the_benchmark() -> None:
    names = suite_names()
    assert len(names) == len(set(names)) == 120 + 15
    assert suite_names(6) == [("S1", 0), ("Q1", 0), ("R1", 0), ("E1", 100), ("X1", 100), ("M1", 100)]
    assert len({task for task, _ in suite_names(39)}) == 39
    assert len(suite_names(50)) == 50


def test_a_suite_of_other_seeds_has_every_task_of_each_and_no_negative() -> None:
    names = suite_names(seeds=[1000, 1001])
    assert len(names) == 48
    assert {seed for _, seed in names} == {1000, 1001}
    assert suite_names(3, [1000, 1001]) == [("S1", 1000), ("Q1", 1000), ("R1", 1000)]


def test_json_and_page(cache: Path) -> None:
    arguments = ("eval", "--suite", "sim", "--limit", "1", "--models", "oracle", "--cache", str(cache), "--jobs", "1")
    done = compass(*arguments, "--json", "--report", str(cache / "report"))
    assert (done.returncode, done.stderr) == (0, "")
    data: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert list(data)[: len(KEYS)] == KEYS
    assert data["executors_agree"] is True
    assert (data["orienter_plan_exact"], data["stalled"], data["early_stop"]) == (1.0, 0, None)
    assert data["findings"]["numbers"]["mae_loop"] == {
        **data["methods"][4]["cells"]["overall"]["mae"],
        "n": 1,
        "of": "episodes",
    }
    assert data["forms"]["state"]["compass"]["mae"] == data["mae_loop"]
    assert [row["model"] for row in data["gap"]] == ["oracle-prm", "blind"]
    shown = {value for value, _ in Page((cache / "report" / "index.html").read_text("utf-8")).values["roles"]}
    assert {
        data["prm_local_mae"],
        data["prm_blind_mae"],
        data["verifier_false_accept"],
        data["realtime_factor"],
    } <= shown
    again = json.loads(compass(*arguments, "--json").stdout)
    assert again["cached"] == 6
    changing = {"realtime_factor", "findings", "facts", "cached", "report", "latencies"}
    assert {key: again[key] for key in again if key not in changing} == {
        key: data[key] for key in data if key not in changing
    }


def test_the_table_for_people(cache: Path) -> None:
    done = compass("eval", "--suite", "sim", "--limit", "1", "--models", "oracle", "--cache", str(cache), "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "verifier    alone: ",
        "orienter    alone: 100.0% of 1 plans",
        "(blind ",
        "1 of 1 episodes",
        "x real time",
    ):
        assert part in done.stdout


def test_the_package_s_own_model_is_the_suite_s(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own settings, one thread a process, and made once however often it is asked for."""
    episodes, made = list(open_dataset("bundled").episodes()), list[int | None]()

    def models(threads: int | None = None) -> Models:
        made.append(threads)
        return oracles(episodes)

    _tiny_models.cache_clear()
    monkeypatch.setattr(tiny, "models", models)
    monkeypatch.setattr(tiny, "settings", lambda fps: Settings(every=round(fps / 5), max_verifications=5))
    done = compass("eval", "--suite", "sim", "--limit", "1", "--cache", str(cache), "--jobs", "1", "--json")
    _tiny_models.cache_clear()
    assert (done.returncode, done.stderr) == (0, "")
    settings = json.loads(done.stdout)["facts"]["Settings"]
    assert (settings["every"], settings["max_verifications"]) == ("2", "5")
    assert made == [None, 2]


def test_a_worker_gets_one_thread() -> None:
    chosen = suite("tiny", [], threads=1)
    assert chosen.models.args[-1] == 1  # type: ignore[attr-defined]
    assert chosen.wording == PRESETS["tiny"].wording == "orienter"
