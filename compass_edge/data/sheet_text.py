"""The letters of a contact sheet, and lines that fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def _font(name: str, size: int) -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.truetype(name, size)
    except OSError:  # not installed: Pillow's own has fewer letters and is always there
        return ImageFont.load_default(size)


@dataclass(frozen=True, slots=True)
class Lettering:
    title: Any = field(default_factory=lambda: _font("DejaVuSans.ttf", 22))
    small: Any = field(default_factory=lambda: _font("DejaVuSans.ttf", 13))


def wrapped(text: str, font: Any, width: float, most: int) -> list[str]:
    """The text in at most so many lines of at most that width; what does not fit ends in dots."""
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < most:
        line = words.pop(0)
        while words and font.getlength(f"{line} {words[0]}") <= width:
            line = f"{line} {words.pop(0)}"
        last = len(lines) == most - 1 and bool(words)
        if last or font.getlength(line) > width:
            line = _shortened(line, font, width)
        lines.append(line)
    return lines


def _shortened(line: str, font: Any, width: float) -> str:
    while line and font.getlength(f"{line}...") > width:
        line = line[:-1]
    return f"{line.rstrip()}..."
