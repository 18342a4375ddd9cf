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
    true, false = counts.true_accepts + counts.false_rejects, counts.false_accepts + counts.true_rejects

    def cell(count: int, of: int, rate: str) -> str:
        return f"<b>{number(count, 0)}</b>{percent(count / of if of else None)} {rate}"

    rows = [
        [
            "the step had just been done",
            cell(counts.true_accepts, true, ""),
            cell(counts.false_rejects, true, "rejected though true"),
        ],
        [
            "it had not",
            cell(counts.false_accepts, false, "accepted though false"),
            cell(counts.true_rejects, false, ""),
        ],
    ]
    body = table(["", "accepted", "rejected"], rows, kind="confusion")
    if counts.left_out:
        body += (
            f'<p class="quiet">Left out: {number(counts.left_out, 0)} of plans that do not match the annotation.</p>'
        )
    return Section("verifier", "The Verifier", how, body)
