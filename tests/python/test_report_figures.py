"""The pictures: what is in them, found by looking at what was drawn."""

from __future__ import annotations

import io
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from report_samples import curves

from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.report.bars import Block, Row, draw_bars
from compass_edge.eval.report.canvas import INK, LOOP, PLAIN, Picture, sheet, styled, text_width
from compass_edge.eval.report.curves import Mark, draw_curves, spread
from compass_edge.eval.report.floors import Bar as FloorBar
from compass_edge.eval.report.floors import arrange, draw_floors
from compass_edge.eval.report.latencies import Strip, draw_latencies, unit_of
from compass_edge.eval.report.scatter import Dots, draw_scatter


def bar(value: float) -> Estimate:
    return Estimate(value, math.nan, math.nan)


def pixels(picture: Picture) -> np.ndarray:
    with Image.open(io.BytesIO(picture.png)) as image:
        # matplotlib rounds half a pixel up or down, by its version
        assert np.abs(np.subtract(image.size, (2 * picture.width, 2 * picture.height))).max() <= 1
        return np.asarray(image.convert("RGB"), np.int16)


def coloured(picture: Picture, colour: str, near: int = 40) -> np.ndarray:
    """Where the picture has the colour."""
    wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    found = np.abs(pixels(picture) - wanted).max(axis=2) < near
    return np.asarray(found)


@pytest.mark.parametrize("apart", [5.0, 9.0])
def test_labels_are_moved_apart_and_keep_their_order(apart: float) -> None:
    rng = np.random.default_rng(0)
    for wanted in ([50.0, 50.0, 50.0], [100.0, 100.0], [0.0, 0.0, 1.0], *rng.uniform(0, 100, (50, 4)).tolist()):
        places = spread(wanted, apart)
        order = np.argsort(wanted, kind="stable")
        assert all(b - a >= apart - 1e-9 for a, b in itertools.pairwise(np.array(places)[order]))
        assert min(places) >= 0
        assert max(places) <= 100 + 1e-9
    assert spread([10.0, 60.0, 90.0], apart) == [10.0, 60.0, 90.0]


def test_a_bar_is_as_long_as_its_value() -> None:
    rows = [Row("alone", PLAIN, True), Row("loop", LOOP, True)]
    picture = draw_bars("b", "", [("All", "")], rows, [Block("error", [[bar(40.0)], [bar(10.0)]])])
    lengths = [coloured(picture, row.colour, 12).any(axis=0).sum() for row in rows]
    assert lengths[0] / lengths[1] == pytest.approx(4.0, rel=0.02)


def test_a_bar_without_a_value_and_one_below_zero() -> None:
    rows = [Row("alone", PLAIN, True), Row("loop", LOOP, True)]
    block = Block(
        "rho", [[Estimate(-0.5, -0.6, -0.4), bar(math.nan)], [bar(0.5), Estimate(0.25, math.nan, math.nan)]], 2
    )
    picture = draw_bars("b", "", [("A", ""), ("B", "one")], rows, [block])
    negative, positive = coloured(picture, PLAIN, 12).any(axis=0), coloured(picture, LOOP, 12).any(axis=0)
    assert np.flatnonzero(negative).max() <= np.flatnonzero(positive).min() + 2


def test_a_name_that_is_too_long_leaves_room_for_bars() -> None:
    rows = [Row("a name that goes on and on and on and on and on, far too long", LOOP, True)]
    picture = draw_bars("b", "", [("A", "")] * 4, rows, [Block("error", [[bar(9.0)] * 4])])
    assert coloured(picture, LOOP, 12).sum() > 1000


def test_curves_show_verdicts_where_they_fell() -> None:
    drawn = curves()
    with_marks = pixels(draw_curves("c", "", drawn))
    bare = pixels(draw_curves("c", "", type(drawn)(drawn.truth, drawn.lines, drawn.fps, drawn.boundaries, drawn.needs)))
    changed = (np.abs(with_marks - bare).max(axis=2) > 60).any(axis=0)
    assert changed.any()
    groups = 1 + (np.diff(np.flatnonzero(changed)) > 4).sum()
    assert groups == len(drawn.marks)


def test_an_accepted_verdict_looks_other_than_a_rejected_one() -> None:
    drawn = curves()
    dark = []
    for accepted in (True, False):
        marks = [Mark(mark.frame, accepted) for mark in drawn.marks]
        dark.append(coloured(draw_curves("c", "", replace(drawn, marks=marks)), INK, 30).sum())
    assert dark[1] > dark[0] + 50 * len(drawn.marks)  # crosses are of ink, dots of the loop's colour


def test_a_dot_below_the_diagonal_is_drawn_there() -> None:
    picture = draw_scatter("s", "", [Dots("m", LOOP, [40.0] * 9, [10.0] * 9)])
    rows, columns = np.nonzero(coloured(picture, LOOP, 40))
    assert rows.mean() > pixels(picture).shape[0] * 0.6
    assert columns.mean() > pixels(picture).shape[1] * 0.8


def test_controls_are_hollow() -> None:
    bars = [
        FloorBar("S1", "State", 12.0, LOOP, False),
        FloorBar("S2", "State", 3.9, PLAIN, True),
        FloorBar("S3", "State", 4.1, LOOP, False),
    ]
    picture = draw_floors("f", "", bars, 4.0)
    above, below = coloured(picture, LOOP, 12).sum(), coloured(picture, PLAIN, 12).sum()
    assert above > 8 * below > 0
    many = draw_floors("f", "", [FloorBar(f"a long task {at}", "Sequence", 9.0, LOOP, False) for at in range(24)], 4.0)
    assert many.width <= 860


def test_names_of_forms_never_meet() -> None:
    wide = {"State recall": 0.85, "Sequence": 0.6, "Recurrence": 0.75}
    for counts in ((1, 1, 1), (2, 1, 8), (8, 8, 8)):
        bars = [
            FloorBar(f"{group[0]}{at}", group, 9.0, LOOP, False)
            for group, count in zip(wide, counts, strict=True)
            for at in range(count)
        ]
        groups = arrange(bars, wide)
        assert [len(group.bars) for group in groups] == list(counts)
        for left, right in itertools.pairwise(groups):
            assert left.middle + wide[left.name] / 2 < right.middle - wide[right.name] / 2
            assert left.right < right.bars[0]
        places = [at for group in groups for at in group.bars]
        assert min(b - a for a, b in itertools.pairwise(places)) > 0.28
        assert groups[0].middle - wide["State recall"] / 2 >= -1e-9


def test_latency_of_any_size() -> None:
    assert [unit_of(seconds)[0] for seconds in (120.0, 1.0, 0.2, 0.0002)] == ["s", "s", "ms", "µs"]
    for scale in (1e-7, 1.0, 1e4):
        draw_latencies("l", "", [Strip("O", "8 calls", [scale, 2 * scale], LOOP)])
    draw_latencies("l", "", [Strip("O", "no calls", [0.0], LOOP)])


def test_the_users_own_style_changes_nothing() -> None:
    import matplotlib as mpl

    before = draw_scatter("s", "", [Dots("m", LOOP, [4.0], [1.0])]).png
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        assert draw_scatter("s", "", [Dots("m", LOOP, [4.0], [1.0])]).png == before
        assert mpl.rcParams["font.size"] == 30


def test_the_width_of_words() -> None:
    with styled():
        figure = sheet(4, 1)
        assert 0 < text_width(figure, "a") < text_width(figure, "aaaa") < 1
        assert not figure.texts


def test_one_style_sheet_without_addresses() -> None:
    style = (Path(__file__).parents[2] / "compass_edge/eval/report/page.css").read_text()
    assert style.count("{") == style.count("}")
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
