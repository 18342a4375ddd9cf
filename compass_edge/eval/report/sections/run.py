"""What was run, with what, where: enough to run it again."""

from __future__ import annotations

from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.markup import Section, words


def section(data: ReportData) -> Section:
    body = ""
    for group, facts in data.facts.items():
        rows = "".join(
            f'<tr><th scope="row">{words(key)}</th><td>{words(value)}</td></tr>' for key, value in facts.items()
        )
        body += f'<h3>{words(group)}</h3><div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>'
    return Section(
        "run", "This run", "The same command on the same data gives the same numbers, latency aside.", body,
        "Nothing is known about the run.",
    )  # fmt: skip
