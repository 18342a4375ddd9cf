"""Calibration: the search agrees with the rule it tunes, helps where the defaults do not fit, and says what is wrong."""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_edge.cli.main import main
from compass_edge.errors import UsageError
from compass_edge.loop import calibration
from compass_edge.loop.calibration import Curve, Outcome, Weights, calibrate, grid, replay, score
from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.settings import Settings


def model(top: float, count: int, seed: int = 1, ticks: int = 60) -> list[Curve]:
    """A model that climbs to 0.7 of its top and jumps there at completion; one step in five is never completed."""
    random_ = random.Random(seed)
    curves = []
    for index in range(count):
        done_at = None if index % 5 == 4 else random_.randrange(15, ticks - 10)
        clean = [
            top if done_at is not None and tick >= done_at else 0.7 * top * tick / (done_at or ticks)
            for tick in range(ticks)
        ]
        noisy = tuple(min(max(value + random_.gauss(0, 0.02), 0.0), 1.0) for value in clean)
        curves.append(Curve(noisy, done_at, f"curve {index}"))
    return curves


def write(path: Path, curves: list[Curve]) -> str:
    lines = (json.dumps({"scores": curve.scores, "done_at": curve.done_at, "name": curve.name}) for curve in curves)
    path.write_text("\n".join(lines) + "\n\n")
    return str(path)


def test_a_replay_by_hand() -> None:
    rule = CandidateRule(high=0.9, hold=2, retry_after=4)
    completes = Curve((0.1, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95), done_at=5)
    assert replay(rule, completes) == Outcome(early=1, delay=1, missed=False, stalled=False)  # at 2, again at 6
    assert replay(rule, Curve((0.1, 0.2, 0.3, 0.4), done_at=1)) == Outcome(0, delay=3, missed=True, stalled=False)
    assert replay(rule, Curve((0.1, 0.2), done_at=None)) == Outcome(0, delay=None, missed=False, stalled=False)


def test_eight_early_candidates_are_a_stall() -> None:
    rule = CandidateRule(hold=1, retry_after=1, retry_growth=1)
    assert replay(rule, Curve((1.0,) * 20, done_at=9)) == Outcome(early=8, delay=11, missed=True, stalled=True)
    assert replay(rule, Curve((1.0,) * 20, done_at=7)) == Outcome(early=7, delay=0, missed=False, stalled=False)


def test_a_peak_before_completion_is_early_even_when_proposed_after_it() -> None:
    rule = CandidateRule(high=0.95, peak=0.6, drop=0.2, drop_hold=3)
    assert replay(rule, Curve((0.8, 0.3, 0.3, 0.3), done_at=1)) == Outcome(1, delay=3, missed=True, stalled=False)
    assert replay(rule, Curve((0.8, 0.3, 0.3, 0.3), done_at=0)) == Outcome(0, delay=3, missed=False, stalled=False)


def test_a_score_is_what_the_help_says() -> None:
    outcomes = [Outcome(2, 4, False, False), Outcome(0, 10, True, False), Outcome(1, None, False, False)]
    result = score(outcomes, Weights(delay=1, early=10, miss=100))
    assert (result.early, result.delay_mean, result.delay_p95, result.misses) == (1, 7, 10, 1)
    assert (result.early_rate, result.miss_rate) == (pytest.approx(2 / 3), 0.5)
    assert result.cost == 7 + 10 * 1 + 100 * 0.5


coarse = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])  # few values and long runs: ties, holds and stalls are common
runs = st.lists(st.tuples(coarse, st.integers(1, 12)), min_size=1, max_size=8)
curves_of_any_shape = runs.map(lambda parts: tuple(value for value, length in parts for _ in range(length))).flatmap(
    lambda scores: st.builds(Curve, st.just(scores), st.none() | st.integers(0, len(scores) - 1))
)


@settings(max_examples=200)
@given(
    curves=st.lists(curves_of_any_shape, min_size=1, max_size=6),
    thresholds=st.lists(
        st.tuples(coarse, st.integers(1, 4), coarse, coarse, st.integers(1, 4)).filter(
            lambda t: t[0] and t[2] and t[3]
        ),
        min_size=1,
        max_size=6,
    ),
    memory=st.integers(1, 20),
    retry=st.tuples(st.integers(1, 3), st.sampled_from([1, 1.5])),
    flat=st.sampled_from([0, 0.5, 0.99]),
)
def test_the_search_sees_what_the_rule_does(
    curves: list[Curve], thresholds: list[tuple[Any, ...]], memory: int, retry: tuple[int, float], flat: float
) -> None:
    plateau = flat * min(drop for _, _, _, drop, _ in thresholds)
    rules = [CandidateRule(*values, memory, *retry, plateau) for values in thresholds]
    curves.sort(key=lambda curve: -len(curve.scores))
    early, delay, missed = calibration._sweep(rules, curves)
    for row, curve in enumerate(curves):
        for column, rule in enumerate(rules):
            outcome = replay(rule, curve)
            seen = (early[row, column], delay[row, column], missed[row, column])
            assert seen == (outcome.early, outcome.delay or 0, outcome.missed)


def test_a_model_that_saturates_low_is_calibrated() -> None:
    result = calibrate(model(top=0.75, count=60))
    assert result.defaults.miss_rate > 0.9
    assert result.held_out is not None
    assert result.held_out.miss_rate == 0
    assert result.held_out.delay_mean < 2
    assert result.held_out.early < 0.1
    assert 0.55 <= result.rule.high <= 0.75
    unseen = score([replay(result.rule, curve) for curve in model(top=0.75, count=60, seed=2)], Weights())
    assert unseen.cost < result.defaults.cost / 10


def test_where_nothing_is_better_the_defaults_stay() -> None:
    clean = [Curve((0.1,) * n + (1.0,), done_at=n) for n in range(5, 20)]
    assert calibrate(clean).rule.hold == 1  # the last tick is the only high one
    held = [Curve((0.1,) * n + (0.91, 1.0, 1.0), done_at=n + 1) for n in range(5, 20)]
    assert calibrate(held).rule == CandidateRule()


def test_a_dearer_early_proposal_is_made_less_often() -> None:
    random_ = random.Random(5)
    noise = [Curve(tuple(random_.random() for _ in range(60)), 40) for _ in range(30)]
    cheap, dear = (calibrate(noise, Weights(early=weight)).fitted for weight in (0.0, 100.0))
    assert dear.early < cheap.early
    assert dear.delay_mean > cheap.delay_mean


def test_the_fit_is_the_best_of_the_grid() -> None:
    curves, weights = model(top=0.6, count=12), Weights()
    result = calibrate(curves, weights)
    costs = [score([replay(rule, curve) for curve in curves], weights).cost for rule in grid(CandidateRule())[::37]]
    assert result.fitted.cost <= min(*costs, result.defaults.cost)


def test_the_same_curves_give_the_same_answer() -> None:
    assert calibrate(model(0.75, 25)) == calibrate(model(0.75, 25))


def test_every_fold_has_a_completion() -> None:
    curves = [Curve((0.5,), 0 if index < 5 else None) for index in range(40)]
    fold = calibration._folds(curves, 5)
    assert sorted(fold[:5]) == [0, 1, 2, 3, 4]
    assert {fold.count(one) for one in range(5)} == {8}


def test_without_completions_there_is_nothing_to_fit() -> None:
    with pytest.raises(UsageError, match="none of the 2 that came"):
        calibrate([Curve((0.5,), None)] * 2)


def test_the_command_as_a_person_sees_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", write(tmp_path / "curves.jsonl", model(0.75, 30))]) == 0
    shown = capsys.readouterr()
    rows = {line.split()[0]: line.split() for line in reversed(shown.out.splitlines()) if line.strip()}
    assert rows["30"] == ["30", "curves,", "24", "completed,", "1800", "ticks"]
    assert float(rows["held"][-1]) < float(rows["defaults"][-1]) / 10
    assert shown.out.count("<- fitted") == 1
    assert "note" not in shown.out
    assert shown.err == ""


def test_json_and_file_are_settings_of_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, out = write(tmp_path / "curves.jsonl", model(0.75, 30)), tmp_path / "settings.json"
    out.write_text("an older one")
    assert main(["calibrate", labels, "--json", "--out", str(out), "--folds", "3"]) == 0
    report = json.loads(capsys.readouterr().out)
    written = Settings.from_dict(json.loads(out.read_text()))
    assert written == Settings.from_dict({"candidate": report["candidate"]})
    assert written.candidate == calibrate(model(0.75, 30), folds=3).rule
    assert len(report["folds"]) == 3
    assert report["held_out"]["cost"] < report["defaults"]["cost"]
    assert [row["high"] for row in report["roc"]] == sorted(row["high"] for row in report["roc"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.jsonl", "settings.json"]


def test_few_curves_from_stdin_work_and_are_said_to_be_few(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = b'{"scores": [0.1, 0.5, 0.5], "done_at": 1, "robot": "arm 3"}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert main(["calibrate", "-"]) == 0
    shown = capsys.readouterr().out
    assert "1 curves are few" in shown
    assert "nothing could be held out" in shown
    assert "held out  " not in shown


def test_a_fit_that_does_not_carry_over_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perfect = [Curve((0.1,) * 9 + (0.95, 1.0, 1.0), done_at=10)] * 12
    assert main(["calibrate", write(tmp_path / "curves.jsonl", perfect)]) == 0
    assert "no better than the defaults" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("[0.5]", "expected an object with 'scores' and 'done_at', and [0.5] came"),
        ('{"scores": [0.5', "cannot be read: Expecting ',' delimiter at character 16"),
        ('{"scores": [0.5]}', "the key 'done_at' (the tick of completion, or null) is missing. There are: scores."),
        ('{"done_at": null}', "the key 'scores' (a score a tick) is missing"),
        ('{"scores": [], "done_at": null}', "'scores' must be a list of at least one score, and [] came"),
        ('{"scores": "high", "done_at": 0}', "'scores' must be a list of at least one score, and \"high\" came"),
        ('{"scores": [0.5, 55], "done_at": 0}', "numbers from 0 to 1, and at tick 1 55 came"),
        ('{"scores": [NaN], "done_at": 0}', "numbers from 0 to 1, and at tick 0 NaN came"),
        ('{"scores": [true], "done_at": 0}', "numbers from 0 to 1, and at tick 0 true came"),
        (
            '{"scores": [0.5], "done_at": 1}',
            "the index of a score, 0 to 0, or null if the step was never completed, and 1",
        ),
        ('{"scores": [0.5], "done_at": 0.0}', "completed, and 0.0 came"),
        ('{"scores": [0.5], "done_at": 0, "name": 7}', "'name' must be a text, and 7 came"),
        ("\udcff", "cannot be read: 'utf-8' codec"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, part: str) -> None:
    labels = tmp_path / "curves.jsonl"
    labels.write_bytes(f'{{"scores": [1], "done_at": 0}}\n\n{line}\n'.encode(errors="surrogateescape"))
    assert main(["calibrate", str(labels), "--out", str(tmp_path / "out.json")]) == 2
    error = capsys.readouterr().err
    assert f"{labels}, line 3: " in error
    assert part in error
    assert not (tmp_path / "out.json").exists()


def test_bad_files_get_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = write(tmp_path / "curves.jsonl", model(0.75, 5))
    empty = write(tmp_path / "empty.jsonl", [])
    for arguments, part in [
        (["no/such.jsonl"], "There is no file 'no/such.jsonl'"),
        ([str(tmp_path)], "cannot be read: Is a directory"),
        ([empty], "expected a curve a line, and there is none"),
        ([labels, "--out", str(tmp_path)], "--out must name a file"),
        ([labels, "--out", str(tmp_path / "no" / "x.json")], "cannot be written: No such file or directory"),
    ]:
        assert main(["calibrate", *arguments]) == 2
        assert part in capsys.readouterr().err
    for option in (["--folds", "1"], ["--early-weight", "-1"], ["--miss-weight", "much"]):
        with pytest.raises(SystemExit, match="2"):
            main(["calibrate", labels, *option])
        assert "of at least" in capsys.readouterr().err


def test_ctrl_c_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    labels, out = write(tmp_path / "curves.jsonl", model(0.75, 5)), tmp_path / "settings.json"
    out.write_text("an older one")
    monkeypatch.setattr(calibration, "_sweep", pressed)
    assert main(["calibrate", labels, "--out", str(out)]) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "stopped" in shown.err
    assert out.read_text() == "an older one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves.jsonl", "settings.json"]
