"""The markup of the page. Whatever comes from data passes through `words`, and a number keeps its full value beside the short one."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from compass_edge.eval.bootstrap import Estimate
from compass_edge.eval.report.canvas import Picture


@dataclass(frozen=True, slots=True)
class Section:
    id: str
    title: str
    how: str  # to read it; plain words
    body: str  # markup; empty: there is nothing to show
    missing: str = ""  # then: which option adds it
    pictures: Sequence[Picture] = ()


def words(text: object) -> str:
    """Text that shows as it is. Control characters, which no page may hold, become a visible sign."""
    shown = "".join(char if char >= " " or char in "\n\t" else "�" for char in str(text))
    return html.escape(shown.encode("utf-8", "replace").decode("utf-8"), quote=True)


def number(value: float | None, digits: int = 1, sign: bool = False) -> str:
    if value is None or not math.isfinite(value):
        return '<span class="none">–</span>'  # noqa: RUF001
    short = f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")  # noqa: RUF001
    return f'<data value="{float(value)!r}">{short}</data>'


def percent(value: float | None, sign: bool = False) -> str:
    if value is None or not math.isfinite(value):
        return '<span class="none">–</span>'  # noqa: RUF001
    short = f"{100 * value:{'+' if sign else ''}.0f}%".replace("-", "−")  # noqa: RUF001
    return f'<data value="{float(value)!r}">{short}</data>'


def estimate(value: Estimate | None, digits: int = 1) -> str:
    """The mean, and its interval in small."""
    if value is None:
        return number(None)
    if not (math.isfinite(value.low) and math.isfinite(value.high)):
        return number(value.value, digits)
    return (
        f"{number(value.value, digits)}"
        f'<span class="range">{number(value.low, digits)} to {number(value.high, digits)}</span>'
    )


def change(value: float | None, lower_is_better: bool) -> str:
    if value is None or not math.isfinite(value):
        return ""
    if abs(value) < 0.005:  # reads as 0%: neither
        return f'<span class="same">{percent(value)}</span>'
    better = (value < 0) == lower_is_better
    return f'<span class="{"gain" if better else "loss"}">{percent(value, sign=True)}</span>'


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "", top: Sequence[tuple[str, int]] = ()
) -> str:
    """Cells are markup. The first cell of a row names it. `top` is a line of heads above, each over so many columns."""
    lines = [f'<div class="scroll"><table class="{kind}">' if kind else '<div class="scroll"><table>', "<thead>"]
    if top:
        lines.append("<tr>" + "".join(f'<th colspan="{span}" class="over">{text}</th>' for text, span in top) + "</tr>")
    lines.append("<tr>" + "".join(f'<th scope="col">{text}</th>' for text in head) + "</tr></thead><tbody>")
    for first, *rest in rows:
        lines.append(f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def figure(picture: Picture, caption: str = "", kind: str = "") -> str:
    """`caption` is markup. The picture is in the page itself: nothing is fetched."""
    coded = base64.b64encode(picture.png).decode("ascii")
    image = (
        f'<img src="data:image/png;base64,{coded}" alt="{words(picture.alt)}" '
        f'width="{picture.width}" height="{picture.height}">'
    )
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure class="{kind}"><div class="scroll">{image}</div>{below}</figure>'


def swatch(colour: str) -> str:
    return f'<i class="swatch" style="background:{words(colour)}"></i>'
