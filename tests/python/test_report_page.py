"""The page: every section for full data, one less for each part that is missing, no markup and no address from outside."""

from __future__ import annotations

import base64
import builtins
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_samples import chosen, curves, full

from compass_edge.errors import EnvironmentFault, UsageError
from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.report.data import ReportData
from compass_edge.eval.report.markup import change, estimate, number, words
from compass_edge.eval.report.page import write_report
from compass_edge.eval.runner import Failed

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Well-formed, or an AssertionError; and what is in it, by section."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.section = "headline"
        self.words: dict[str, list[str]] = {}
        self.values: dict[str, list[tuple[float, str]]] = {}
        self.attributes: list[tuple[str, str, str]] = []
        self._value: float | None = None
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        assert len(given) == len(attrs), f"an attribute twice in <{tag}>"
        self.attributes += [(tag, key, value) for key, value in given.items()]
        if tag == "section":
            self.section = given["id"]
        if tag == "data":
            self._value = float(given["value"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag == "data":
            self._value = None

    def handle_data(self, data: str) -> None:
        self.words.setdefault(self.section, []).append(data)
        if self._value is not None:
            self.values.setdefault(self.section, []).append((self._value, data))

    def text(self, section: str) -> str:
        return "".join(self.words.get(section, []))


def page_of(directory: Path, data: ReportData) -> Page:
    return Page(write_report(directory, data).read_text("utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"), full())


@pytest.fixture(scope="module")
def page(written: Path) -> Page:
    return Page(written.read_text("utf-8"))


SECTIONS = [
    "forms",
    "gap",
    "episodes",
    "negatives",
    "ablation",
    "verifier",
    "roles",
    "theorem",
    "floor",
    "latency",
    "run",
]


def test_every_section_is_there_and_none_is_missing(page: Page) -> None:
    assert [value for tag, key, value in page.attributes if tag == "section" and key == "id"] == SECTIONS
    assert "missing" not in [value for _, key, value in page.attributes if key == "class"]
    links = [value for tag, key, value in page.attributes if tag == "a" and key == "href"]
    assert links == [f"#{section}" for section in SECTIONS]
    assert "Made-up numbers." in page.text("headline")
    assert "abc123" in page.text("run")


def test_pictures_are_in_the_page_and_beside_it(written: Path, page: Page) -> None:
    shown = [value for tag, key, value in page.attributes if tag == "img" and key == "src"]
    files = sorted(written.parent.glob("*.png"))
    assert len(shown) == len(files) == 5 + 1 + 9 + 3
    inside = {base64.b64decode(value.removeprefix("data:image/png;base64,"), validate=True) for value in shown}
    assert inside == {file.read_bytes() for file in files}
    assert all(value for tag, key, value in page.attributes if tag == "img" and key == "alt")
    assert max(file.stat().st_size for file in files) < 60_000
    for tag, key, value in page.attributes:
        if tag == "img" and key in ("width", "height"):
            assert 100 <= int(value) <= 800


def test_nothing_is_fetched_from_anywhere(written: Path, page: Page) -> None:
    text = re.sub(r"base64,[^\"]+", "", written.read_text("utf-8"))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<link|<iframe|srcset", text)
    fetching = [(tag, key) for tag, key, _ in page.attributes if key in ("src", "href")]
    assert set(fetching) == {("img", "src"), ("a", "href")}


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


@pytest.mark.parametrize(
    ("section", "field"),
    [("forms", "methods"), ("gap", "gap"), ("negatives", "deviations"), ("ablation", "ablation"),
     ("verifier", "confusion"), ("theorem", "bounds"), ("floor", "floors")],
)  # fmt: skip
def test_the_numbers_are_those_of_the_data(page: Page, section: str, field: str) -> None:
    data = asdict(full())[field]
    if field == "methods":
        data = [
            {**method["cells"]["overall"], "matched": method["cells"]["overall"]["matched"]["value"]} for method in data
        ]
        data = [{key: value for key, value in cell.items() if key not in ("episodes", "mixes")} for cell in data]
    if field == "ablation":
        data = [[cell["end_error"] for cell in variant["cells"].values()] for variant in data]
    if field == "gap":
        data = [{key: value for key, value in row.items() if key != "dots"} for row in data]
    if field == "bounds":
        data = [{key: value for key, value in line.items() if not key.endswith("_pooled")} for line in data]
    if field == "deviations":
        data = [
            [kind["deviation"], kind["terminal"], kind["right"]] for line in data for kind in line["kinds"].values()
        ]
    expected = list(numbers_in(data))
    shown = [value for value, _ in page.values[section]]
    assert set(expected) <= set(shown)
    assert len(shown) >= len(expected)


def test_every_number_is_in_its_own_column(page: Page) -> None:
    line, row = full().bounds[0], full().gap[0]
    shown = [value for value, _ in page.values["theorem"]]
    assert shown[:13] == [line.k, line.delta_s, line.delta_q, line.delta_r, line.floor_error, line.floor, line.eta, line.lam,
                          line.bound_error, line.bound, line.alpha, line.beta, line.gamma]  # fmt: skip
    expected = []
    for cell in (row.without, row.oracle, row.chained):
        assert cell is not None
        for change_by, value in ((cell.mae_change, cell.mae), (cell.rho_change, cell.rho)):
            expected += [] if change_by is None else [change_by]
            expected += [value.value, value.low, value.high]
    assert [value for value, _ in page.values["gap"]][: len(expected) + 1] == [*expected, row.intervals]
    counts = full().confusion
    assert counts is not None
    whole = [value for value, _ in page.values["verifier"] if value == int(value)]
    assert whole == [
        counts.true_accepts,
        counts.false_rejects,
        counts.false_accepts,
        counts.true_rejects,
        counts.left_out,
    ]


def test_the_headline(page: Page) -> None:
    loop, alone = full().methods[-1].cells["overall"], full().methods[0].cells["overall"]
    shown = [value for value, _ in page.values["headline"]]
    assert shown == [loop.mae.value, loop.mae.low, loop.mae.high, loop.rho.value, loop.rho.low, loop.rho.high,
                     alone.mae.value, alone.mae.low, alone.mae.high, 0.78, 0.31, 7.0]  # fmt: skip
    assert "12.3" in page.text("headline")
    assert "78%" in page.text("headline")


def test_what_is_read_is_the_value_rounded(page: Page) -> None:
    for values in page.values.values():
        for value, text in values:
            read = text.replace("−", "-").replace("+", "")  # noqa: RUF001
            digits = len(read.rstrip("%").partition(".")[2])
            exact = 100 * value if read.endswith("%") else value
            assert abs(float(read.rstrip("%")) - exact) <= 0.5000001 * 10**-digits


def test_verdicts_on_the_bounds(tmp_path: Path) -> None:
    broken = replace(full().bounds[0], floor_holds=False, bound_holds=True, alpha=math.nan)
    shown = page_of(tmp_path, ReportData("t", {}, bounds=[broken])).text("theorem")
    assert (shown.count("✗"), shown.count("✓"), shown.count("–")) == (1, 1, 1)  # noqa: RUF001


@pytest.mark.parametrize(
    ("section", "field", "option"),
    [
        ("forms", "methods", "--tasks"),
        ("gap", "gap", "annotated"),
        ("episodes", "chosen", "the loop"),
        ("negatives", "deviations", "--negatives"),
        ("ablation", "ablation", "--ablation"),
        ("verifier", "confusion", "verdicts"),
        ("roles", "findings", "--suite sim"),
        ("theorem", "bounds", "annotated"),
        ("floor", "floors", "--tasks"),
        ("latency", "latencies", "timed"),
        ("run", "facts", "Nothing is known"),
    ],
)
def test_a_part_that_is_missing_says_what_adds_it(tmp_path: Path, section: str, field: str, option: str) -> None:
    """All others empty too, so that it is quick; that they stand with full data is tested above."""
    page = page_of(tmp_path, ReportData("t", {}))
    assert option in page.text(section)
    assert not page.values.get(section)
    only = ReportData("t", {}, **({} if field == "facts" else {field: getattr(full(), field)}))
    if field == "facts":
        only = ReportData("t", full().facts)
    shown = page_of(tmp_path / "only", only)
    assert option not in shown.text(section) or section in ("theorem", "gap", "episodes")
    missing = [value for _, key, value in shown.attributes if key == "class" and value == "missing"]
    assert len(missing) == len(SECTIONS) + (field != "methods") - 1


def test_runs_that_failed_are_told(tmp_path: Path, page: Page) -> None:
    failed = [Failed("compass", "R1/<0>", "no frame"), Failed("compass", "R1/1", "no frame")]
    shown = page_of(tmp_path, ReportData("t", {}, failures=failed)).text("headline")
    assert "2 runs failed and are missing from these numbers. The first: compass on R1/<0>: no frame" in shown
    assert "failed" not in page.text("headline")


def test_hostile_names_and_sentences_stay_words(tmp_path: Path) -> None:
    hostile = "</style><script>alert(1)</script>\"'><img src=x onerror=y> $\\frac$ \x00\x1b[31m \ud800 &amp; 红"
    data = full()
    data = replace(
        data,
        title=hostile,
        notice=hostile,
        facts={hostile: {hostile: hostile}},
        methods=[replace(data.methods[0], name=hostile), data.methods[3]],
        gap=[replace(data.gap[0], model=hostile)],
        chosen=[replace(chosen(hostile, None, hostile), instruction=hostile * 9)],
        deviations=[replace(data.deviations[0], method=hostile)],
        negatives=[],
        ablation=[replace(data.ablation[0], tau=hostile)],
        bounds=[replace(data.bounds[0], task=hostile)],
        floors=[replace(data.floors[0], task=hostile)],
    )
    path = write_report(tmp_path, data)
    page = Page(path.read_text("utf-8"))
    assert not [tag for tag, _, _ in page.attributes if tag == "script"]
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    for section in ("headline", "forms", "gap", "episodes", "negatives", "ablation", "theorem", "floor", "run"):
        assert "<script>alert(1)</script>" in page.text(section), section
    assert "\x1b" not in path.read_text("utf-8")
    assert all(re.fullmatch(r"[a-z0-9-]+\.png", file.name) for file in tmp_path.glob("*.png"))


def test_without_matplotlib_the_cure_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError("No module named 'matplotlib'")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EnvironmentFault, match=r"pip install 'compass-edge\[eval\]'"):
        write_report(tmp_path, full())
    assert not (tmp_path / "index.html").exists()


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match=r"needs a directory, and .*taken' is a file"):
        write_report(tmp_path / "taken", full())
    with pytest.raises(UsageError, match="cannot be made"):
        write_report(tmp_path / "taken" / "below", full())


def test_numbers_as_words() -> None:
    assert words("a<b>&\x07") == "a&lt;b&gt;&amp;�"
    assert number(-0.25, 2) == '<data value="-0.25">−0.25</data>'  # noqa: RUF001
    assert "–" in number(None)  # noqa: RUF001
    assert "–" in number(math.nan)  # noqa: RUF001
    assert "to" not in estimate(Estimate(1.0, math.nan, math.nan))
    assert "range" in estimate(Estimate(1.0, 0.5, 1.5))
    assert 'class="gain"' in change(-0.5, lower_is_better=True)
    assert 'class="loss"' in change(0.5, lower_is_better=True)
    assert 'class="gain"' in change(0.5, lower_is_better=False)
    assert change(None, lower_is_better=True) == ""


def test_the_worst_curves_do_not_break_a_picture(tmp_path: Path) -> None:
    """A single frame, no steps, a flat line."""
    still = replace(curves(), truth=np.zeros(1), lines=[], boundaries=[], needs=[], marks=[])
    page = page_of(tmp_path, ReportData("t", {}, chosen=[replace(chosen("a", "state", "best"), curves=still)]))
    assert "a" in page.text("episodes")
