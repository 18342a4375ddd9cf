"""Each role alone: questions with known answers, outside of the loop; and how fast the whole is."""

from __future__ import annotations

from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.findings import Findings, Number
from compass_edge.eval.rate import Rate
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.markup import Section, estimate, number, percent, table, words


def section(data: ReportData) -> Section:
    how = (
        "What each model answers when it is asked alone, about steps whose truth the simulator knows. The Verifier should accept the "
        "first case and no other. The progress model is beside a blind one, which knows how long a step of its kind has been going on "
        "and sees nothing."
    )
    found = data.findings
    if found is None:
        return Section("roles", "Each role alone", how, "", "The roles were not tested alone: --suite sim does.")
    return Section("roles", "Each role alone", how, _verifier(found) + _others(found) + _speed(found))


def _verifier(found: Findings) -> str:
    rows = [
        [words(case), percent(rate.value), _interval(rate), number(rate.of, 0)]
        for case, rate in found.verifier.cases.items()
    ]
    rows.append(
        [
            "all",
            percent(found.verifier.right.value),
            _interval(found.verifier.right),
            number(found.verifier.right.of, 0),
        ]
    )
    return table(["Verifier, by what the frames show", "right", "95%", "questions"], rows, kind="lasttotal")


def _others(found: Findings) -> str:
    numbers = found.numbers
    rows = [
        ["Verifier: accepted though it should not be", _estimate(numbers["verifier_false_accept"])],
        ["Orienter: plans that are exact", _estimate(numbers["orienter_plan_exact"])],
        ["Orienter: plans with the right number of steps", number(found.orienter.sized.value, 3)],
        ["Progress model: mean error within a step, 0 to 1", _estimate(numbers["prm_local_mae"])],
        ["the same of the blind one", _estimate(numbers["prm_blind_mae"])],
        ["Progress model: score of a step that was not done", _estimate(numbers["prm_wrong_sentence"])],
        ["under the sentence of another step", estimate(found.sentences.other_step, 3)],
        ["under its own with another goal", estimate(found.sentences.other_target, 3)],
    ]
    return table(["Alone", "mean"], rows)


def _speed(found: Findings) -> str:
    rows = [
        [
            "episodes whose events are the same with every executor",
            f"{number(found.agreement.hits, 0)} of {number(found.agreement.of, 0)}",
        ]
    ]
    if found.speed is not None:
        rows.append(
            [f"seconds of film a second of computing, {found.speed.threads} threads", number(found.speed.factor, 2)]
        )
    if found.live is not None:
        rows.append(["age of the progress in a live run, 95th percentile, s", number(found.live.age_p95_s, 2)])
    return table(["The whole", ""], rows)


def _interval(rate: Rate) -> str:
    low, high = rate.interval()
    return f"{percent(low)} to {percent(high)}"


def _estimate(value: Number) -> str:
    return estimate(Estimate(value.value, value.low, value.high), 3)
