"""The page about a run: one HTML file that fetches nothing. A video that is too large for it lies beside it."""

from __future__ import annotations

import json
from pathlib import Path

from compass_edge import __version__
from compass_edge.data.part import part_of
from compass_edge.errors import CompassError, UsageError
from compass_edge.eval.report.markup import words
from compass_edge.run_page.chart import chart, legend
from compass_edge.run_page.lanes import lanes
from compass_edge.run_page.record import RunRecord
from compass_edge.run_page.verdicts import verdict
from compass_edge.run_page.video import video

_STYLE, _SCRIPT = (Path(__file__).with_name(name) for name in ("page.css", "page.js"))
# What the page may load: its own pictures and its own video, from nowhere but the page and its folder.
_POLICY = "default-src 'none'; img-src data:; media-src data: file: 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page_directory(path: str | Path) -> Path:
    """The directory, made if need be: a wrong one is known before the run."""
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"The page needs a directory, and '{path}' is a file.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The page's directory '{path}' cannot be made: {error.strerror}.") from error
    return directory


def write_page(directory: str | Path, record: RunRecord) -> Path:
    """Writes index.html, whole or not at all, and returns where it is."""
    directory = page_directory(directory)
    page = directory / "index.html"
    try:
        text = _page(record, video(record.video, record.video_start_s, directory))
        partial = part_of(page)
        partial.write_text(text, "utf-8")
        partial.replace(page)
    except OSError as error:
        raise CompassError(f"The page could not be written to '{directory}': {error.strerror}.") from error
    return page


def _page(record: RunRecord, film: str) -> str:
    facts = "".join(f"<div><dt>{words(name)}</dt><dd>{words(text)}</dd></div>" for name, text in record.facts)
    models = "".join(f"<li><b>{role}</b> {words(name)}</li>" for role, name in record.models.items())
    rulings = "".join(verdict(one) for one in record.verdicts)
    # "</" would end the script early.
    points = json.dumps([[round(at, 3), round(value, 2)] for at, value in record.points]).replace("</", "<\\/")
    busy = lanes(record.spans)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{words(record.title)}: {record.value:.0f} of 100</title>
<style>
{_STYLE.read_text("utf-8")}</style>
</head>
<body>
<header class="top">
<p class="quiet">{words(record.title)}</p>
<h1>{words(record.instruction)}</h1>
<p class="outcome {"good" if record.good else "open"}">{words(record.outcome)}</p>
</header>
<main>
<section class="stage">
<div class="film">{film}</div>
<div class="beside">
<p class="value"><output id="value">{record.value:.0f}</output><span> of 100</span></p>
<p class="quiet" id="when">at the end; {record.verified:.0f} verified</p>
{_plan(record)}
</div>
</section>
<section aria-label="Progress">
<h2>Progress</h2>
{legend(record)}
<div class="scroll">{chart(record)}</div>
<dl class="facts">{facts}</dl>
</section>
<section aria-label="Verdicts">
<h2>What the Verifier saw</h2>
{rulings or '<p class="missing">No completion was proposed, and V was not asked.</p>'}
</section>
<section aria-label="Lanes">
<h2>Who was busy when</h2>
<p class="quiet">O plans, P scores, V verifies; in seconds of the run. A call that waits for another role of its model counts.</p>
<div class="scroll">{busy or '<p class="missing">No model was asked.</p>'}</div>
<ul class="models">{models}</ul>
</section>
</main>
<footer>compass-edge {words(__version__)}. A click on the curve or on a frame shows that moment of the video.</footer>
<script id="points" type="application/json">{points}</script>
<script>
{_SCRIPT.read_text("utf-8")}</script>
</body>
</html>
"""


def _plan(record: RunRecord) -> str:
    if not record.plan:
        return '<p class="missing">There is no plan.</p>'
    lines = []
    for step in record.plan:
        when = (
            f' <button type="button" data-at="{step.at_s:.3f}">{step.at_s:.1f} s</button>'
            if step.at_s is not None
            else ""
        )
        kind = "done" if step.satisfied else "todo"
        lines.append(f'<li class="{kind}" title="{words(step.criterion)}">{words(step.outcome)}{when}</li>')
    return f'<ol class="plan">{"".join(lines)}</ol>'
