"""The canvas that every picture of the report is drawn on: one palette, one type size, no display, small files.

An inch of a picture is shown as 100 pixels of the page and drawn with 200, so that 9 points are 12.5 pixels to the reader.
Pictures have a white ground; the page turns them dark where the reader prefers that.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compass_edge.errors import EnvironmentFault

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 100  # pixels of the page an inch
_DENSITY = 2
_COLOURS = 64  # of a file: enough for flat colours and their soft edges

# Okabe and Ito's colours, which are told apart by everyone; the loop is the one that stands out.
LOOP = "#0072B2"
PLAIN = "#D55E00"  # the model alone, without context
ORACLE = "#009E73"
CHAINED = "#B0649A"
OTHERS = ("#D55E00", "#009E73", "#B0649A", "#B8860B", "#3C8DC5", "#6B6B6B")  # several models side by side
INK, QUIET, RULE, GROUND = "#1B1F24", "#6A737D", "#D5D9DE", "#F1F3F5"
BODY, SMALL = 9.0, 8.0

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": BODY,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a task's name is a dollar
    "axes.edgecolor": RULE,
    "axes.labelcolor": QUIET,
    "axes.labelsize": SMALL,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG and the words for those who do not see it."""

    name: str  # of the file, without its ending
    png: bytes
    width: int  # pixels of the page
    height: int
    alt: str


@contextmanager
def styled() -> Iterator[None]:
    """Pictures drawn inside look alike, whatever the user's matplotlibrc says."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise EnvironmentFault(
            f"A report needs matplotlib, and it cannot be imported ({error}): pip install 'compass-edge[eval]'."
        ) from error
    with mpl.rc_context():
        mpl.rcdefaults()
        parameters: Any = mpl.rcParams  # its keys are typed one by one, in newer versions
        parameters.update(_STYLE)
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty picture of so many inches. No pyplot: nothing global, no window, no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    whole = (round(width, 2), round(height, 2))  # in pixels of the page
    figure = Figure(figsize=whole, dpi=SHOWN * _DENSITY, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def legible(text: str, longest: int = 40) -> str:
    """What the font can draw, and no more of it than fits; the page beside it has the whole text."""
    from matplotlib.font_manager import findfont, get_font

    known = get_font(findfont("DejaVu Sans")).get_charmap()
    shown = "".join(char if ord(char) in known else "?" for char in " ".join(text.split()))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at so many inches from the upper left corner."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, 1 - (top + height) / high, width / wide, height / high))


def text_width(figure: Figure, text: str, size: float = BODY, weight: str = "normal") -> float:
    """How many inches the words take."""
    probe = figure.text(0, 0, text, size=size, weight=weight)
    canvas: Any = figure.canvas
    extent = probe.get_window_extent(canvas.get_renderer())
    probe.remove()
    return float(extent.width) / figure.dpi


def picture(figure: Figure, name: str, alt: str) -> Picture:
    from PIL import Image

    raw = io.BytesIO()
    figure.savefig(raw, format="png", facecolor="white")
    with Image.open(raw) as drawn:
        few = drawn.convert("RGB").quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small = io.BytesIO()
    few.save(small, format="png", optimize=True)
    width, height = figure.get_size_inches()
    return Picture(name, small.getvalue(), round(width * SHOWN), round(height * SHOWN), alt)
