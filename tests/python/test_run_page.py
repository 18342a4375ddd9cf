"""The page about a run: one file that fetches nothing, with everything that happened, and nothing that a model can break."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from oracle_preset import bundled, models

from compass_edge.cli.footage import FilmFootage
from compass_edge.cli.footage_record import record_of
from compass_edge.cli.footage_run import FootageRun
from compass_edge.cli.report import Report
from compass_edge.errors import UsageError
from compass_edge.eval.sampling import settings_at
from compass_edge.run_page import video
from compass_edge.run_page.chart import HEIGHT, LEFT, RIGHT, WIDTH, chart, spacing
from compass_edge.run_page.lanes import lanes
from compass_edge.run_page.page import write_page
from compass_edge.run_page.record import RunRecord
from compass_edge.run_page.spans import Span


@pytest.fixture(scope="module")
def record() -> RunRecord:
    episode = bundled("S1/0")
    with Path("/dev/null").open("w") as out:
        run = FootageRun(
            FilmFootage(episode), models(), settings_at(episode.fps), "sequential", Report(episode.id, out)
        )
        run.go()
        return record_of(run, run.summary(), title=episode.id, without=episode.progress() / 2)


class Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "poster", "srcset", "action")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Of a drawing: it needs no end."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_it_is_one_file_that_fetches_nothing(tmp_path: Path, record: RunRecord) -> None:
    page = write_page(tmp_path / "new" / "page", record)
    assert [path.name for path in page.parent.iterdir()] == ["index.html"]
    text = page.read_text("utf-8")
    seen = Addresses()
    seen.feed(text)
    seen.close()
    assert not seen.open
    assert len(seen.found) == 1 + 3 * len(record.verdicts)
    assert all(address.startswith(("data:image/jpeg;base64,", "data:video/mp4;base64,")) for address in seen.found)
    assert not re.search(r"https?://|@import|url\(", text)
    assert "default-src 'none'" in text


def test_it_tells_everything(tmp_path: Path, record: RunRecord) -> None:
    text = write_page(tmp_path, record).read_text("utf-8")
    assert "done: every step verified, the plan reviewed" in text
    for step in record.plan:
        assert step.outcome in text
        assert f'data-at="{step.at_s:.3f}"' in text
    for one in record.verdicts:
        assert one.start.said in text
        assert one.candidate.said in text
        assert f"{one.candidate.at_s:.1f} s, frame {one.candidate.frame}" in text
    assert record.models["prm"] in text
    assert "prefers-color-scheme: dark" in text


def test_what_a_model_or_a_file_says_is_text(tmp_path: Path, record: RunRecord) -> None:
    nasty = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>\x07"
    verdict = replace(record.verdicts[0], verdict=nasty, change=nasty, sentence=nasty, tau=nasty, reason=nasty)
    verdict = replace(verdict, start=replace(verdict.start, said=nasty))
    step = replace(record.plan[0], outcome=nasty, criterion=nasty)
    spoilt = replace(record, title=nasty, instruction=nasty, outcome=nasty, verdicts=[verdict], plan=[step])
    text = write_page(tmp_path, replace(spoilt, models={"prm": nasty}, facts=[(nasty, nasty)])).read_text("utf-8")
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "\x07" not in text
    assert text.count("<script") == 2


def test_a_large_video_lies_beside_the_page(tmp_path: Path, record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "EMBEDDED", 1000)
    text = write_page(tmp_path, record).read_text("utf-8")
    assert 'src="video.mp4"' in text
    assert record.video is not None
    assert (tmp_path / "video.mp4").read_bytes() == record.video.read_bytes()
    write_page(tmp_path, replace(record, video=tmp_path / "video.mp4"))  # it is there already
    assert "There is no film of this run" in write_page(tmp_path, replace(record, video=None)).read_text("utf-8")


def test_a_run_without_anything_has_a_page(tmp_path: Path, record: RunRecord) -> None:
    bare = replace(record, plan=(), verdicts=(), spans=(), truth=(), without=(), points=[(0.0, 0.0)], duration_s=0.0)
    text = write_page(tmp_path, bare).read_text("utf-8")
    assert "There is no plan" in text
    assert "V was not asked" in text
    assert "No model was asked" in text


def test_a_file_is_no_directory(tmp_path: Path, record: RunRecord) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="The page needs a directory"):
        write_page(tmp_path / "file", record)


def test_the_curve_goes_through_its_points_and_verified_steps_lie_on_it(record: RunRecord) -> None:
    root = ElementTree.fromstring(chart(record))
    lines = {str(line.get("class")): str(line.get("points")).split() for line in root.iter("polyline")}
    assert set(lines) == {"line loop", "line truth", "line without"}
    assert len(lines["line loop"]) == len(record.points)
    assert len(lines["line truth"]) < 20  # straight between two bends
    drawn = [tuple(map(float, point.split(","))) for line in lines.values() for point in line]
    assert all(LEFT <= x <= WIDTH - RIGHT and 0 <= y <= HEIGHT for x, y in drawn)
    marks = [(float(str(mark.get("cx"))), float(str(mark.get("cy")))) for mark in root.iter("circle")]
    assert len(marks) == 3
    loop = [tuple(map(float, point.split(","))) for point in lines["line loop"]]
    assert all(any(abs(x - at) < 0.2 and abs(y - high) < 0.2 for x, y in loop) for at, high in marks)


@pytest.mark.parametrize("seconds", [0.1, 1, 16, 61, 600, 5000, 100_000])
def test_an_axis_has_a_few_marks(seconds: float) -> None:
    assert seconds / spacing(seconds) <= 12


def test_calls_that_touch_are_one_bar() -> None:
    second = 10**9
    spans = [Span("prm", at * second // 1000, (at + 1) * second // 1000, 1) for at in range(3000)]
    spans += [Span("verifier", 0, second, 1), Span("verifier", 2 * second, 3 * second, 1)]
    root = ElementTree.fromstring(lanes(spans))
    bars = [(bar.get("class"), bar.findtext("title")) for bar in root.iter("rect") if bar.get("class") != "idle"]
    assert bars == [("prm", "3000 calls, 3.00 s"), ("verifier", "1 call, 1.00 s"), ("verifier", "1 call, 1.00 s")]
