"""The Verifier's verdicts against the annotation."""

from __future__ import annotations

from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.markup import Section, number, percent, table


def section(data: ReportData) -> Section:
    how = (
        "Completions that the model proposed, by what they were and what the Verifier said. A false one that is accepted moves the "
        "position ahead of the task; a true one that is rejected only delays it."
    )
    counts = data.confusion
    if counts is None:
        return Section("verifier", "The Verifier", how, "", "There is no run of the loop with verdicts to count.")
    true, false = counts.accepted_true + counts.rejected_true, counts.accepted_false + counts.rejected_false

    def cell(count: int, of: int, rate: str) -> str:
        return f"<b>{number(count, 0)}</b>{percent(count / of if of else None)} {rate}"

    rows = [
        [
            "the step had just been done",
            cell(counts.accepted_true, true, ""),
            cell(counts.rejected_true, true, "rejected though true"),
        ],
        [
            "it had not",
            cell(counts.accepted_false, false, "accepted though false"),
            cell(counts.rejected_false, false, ""),
        ],
    ]
    return Section("verifier", "The Verifier", how, table(["", "accepted", "rejected"], rows, kind="confusion"))
