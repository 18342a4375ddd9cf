"""The page: one HTML file that needs nothing else, and its pictures as files beside it."""

from __future__ import annotations

from pathlib import Path

from compass_edge.errors import CompassError, UsageError
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.markup import Section, words
from compass_edge.eval.report.sections import SECTIONS

_STYLE = Path(__file__).with_name("page.css")


def report_directory(path: str | Path) -> Path:
    """The directory, made if need be: a wrong one is known before hours of work."""
    directory = Path(path)
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"The report needs a directory, and '{path}' is a file.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The report's directory '{path}' cannot be made: {error.strerror}.") from error
    return directory


def write_report(directory: str | Path, data: ReportData) -> Path:
    """Writes index.html and the PNGs, and returns where the page is. Needs matplotlib."""
    directory = report_directory(directory)
    sections = [section(data) for section in SECTIONS]
    page = directory / "index.html"
    try:
        for section in sections:
            for picture in section.pictures:
                (directory / f"{picture.name}.png").write_bytes(picture.png)
        page.write_text(_page(data, sections), "utf-8")
    except OSError as error:
        raise CompassError(f"The report could not be written to '{directory}': {error.strerror}.") from error
    return page


def _page(data: ReportData, sections: list[Section]) -> str:
    notice = "".join(f'<p class="notice">{words(text)}</p>' for text in (data.notice, _failed(data)) if text)
    links = "".join(f'<a href="#{part.id}">{part.title}</a>' for part in sections if part.title and part.body)
    first, *others = sections
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{words(data.title)}</title>
<style>
{_STYLE.read_text("utf-8")}</style>
</head>
<body>
<header>
<h1>{words(data.title)}</h1>
<p class="quiet">Progress that a single frame does not show: how well each method reports it, against the annotation.</p>
{notice}
{_headline(first)}
<nav aria-label="Sections">{links}</nav>
</header>
<main>
{"".join(_section(part) for part in others)}
</main>
<footer>compass-edge eval. Progress, errors and floors are on a scale of 0 to 100.</footer>
</body>
</html>
"""


def _headline(part: Section) -> str:
    return part.body or f'<p class="missing">{words(part.missing)}</p>'


def _section(part: Section) -> str:
    if not part.body:
        return f'<section id="{part.id}"><h2>{part.title}</h2><p class="missing">{words(part.missing)}</p></section>\n'
    return f'<section id="{part.id}"><h2>{part.title}</h2><p class="how">{words(part.how)}</p>\n{part.body}</section>\n'


def _failed(data: ReportData) -> str:
    if not data.failures:
        return ""
    first = data.failures[0]
    return (
        f"{len(data.failures)} runs failed and are missing from these numbers. The first: {first.method} on {first.episode}: "
        f"{first.reason}"
    )
