"""A contact sheet: an episode at one look, its frames with their annotation and the curve of its progress below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.data.episode import Episode
from compass_edge.data.film import Picture
from compass_edge.data.sheet_text import Lettering, wrapped
from compass_edge.errors import CompassError, EnvironmentFault, UsageError

COLUMNS, CELL, GAP, MARGIN = 6, 256, 16, 28
CURVE = 132
PAPER, INK, FAINT, RULE = "#ffffff", "#1b1f24", "#6b7480", "#d9dee4"
STEPS = ("#3b7dd8", "#e08a1e", "#3a9d5d", "#c2478b", "#7a5fd0", "#b5522b", "#2a9aa8", "#8a8f1d")


def write_contact_sheet(episode: Episode, path: Path | str, *, shown: int = 24) -> Path:
    """A PNG: `shown` frames evenly spaced, and the end of each step."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise UsageError(f"A contact sheet is a PNG: '{path}' should end in .png.")
    image = draw_contact_sheet(episode, shown=shown)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, "PNG")
    except OSError as error:
        raise CompassError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    return path


def chosen_frames(episode: Episode, shown: int) -> list[int]:
    """Evenly spaced ones with the first and the last, and each step's end that the film still shows."""
    even = np.linspace(0, episode.frames - 1, min(shown, episode.frames)).round().astype(int).tolist()
    ends = [step.end for step in episode.steps or () if step.end < episode.frames]
    return sorted({*even, *ends})


def draw_contact_sheet(episode: Episode, *, shown: int = 24) -> Any:
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise EnvironmentFault("A contact sheet needs pillow: `pip install 'compass-edge[data]'`.") from error
    numbers = chosen_frames(episode, shown)
    pictures = dict(_pictures(episode, numbers))
    height, width = next(iter(pictures.values())).shape[:2]
    look = _Look(episode, Lettering(), max(CELL * height // width, 1))
    sentences = [wrapped(step.sentence, look.letters.small, CELL, 2) for step in episode.steps or ()]
    text_lines = 1 + max(map(len, sentences), default=0)
    cell_height = look.picture_height + 8 + 20 * text_lines + 10
    page_width = 2 * MARGIN + COLUMNS * CELL + (COLUMNS - 1) * GAP
    title = wrapped(episode.instruction or "(no instruction)", look.letters.title, page_width - 2 * MARGIN, 2)
    top = MARGIN + 30 * len(title) + 34
    rows = -(-len(numbers) // COLUMNS)
    page_height = top + rows * (cell_height + GAP) + CURVE + MARGIN + 28
    page = Image.new("RGB", (page_width, page_height), PAPER)
    draw = ImageDraw.Draw(page)
    for place, line in enumerate(title):
        draw.text((MARGIN, MARGIN + 30 * place), line, INK, look.letters.title)
    draw.text((MARGIN, top - 32), _about(episode), FAINT, look.letters.small)
    for place, number in enumerate(numbers):
        left = MARGIN + place % COLUMNS * (CELL + GAP)
        upper = top + place // COLUMNS * (cell_height + GAP)
        small = Image.fromarray(pictures[number]).resize((CELL, look.picture_height), Image.Resampling.LANCZOS)
        page.paste(small, (left, upper))
        look.cell(draw, left, upper, number)
    look.curve(draw, MARGIN, page_height - MARGIN - 20 - CURVE, page_width - 2 * MARGIN, numbers)
    return page


def _pictures(episode: Episode, numbers: list[int]) -> Iterator[tuple[int, Picture]]:
    wanted = set(numbers)
    return ((number, picture) for number, picture in episode.film.pictures(stop=numbers[-1] + 1) if number in wanted)


def _about(episode: Episode) -> str:
    parts = [episode.id, f"{episode.frames} frames", f"{episode.fps:g} fps", f"{episode.frames / episode.fps:.1f} s"]
    if episode.steps is None:
        return "   ".join([*parts, "not annotated"])
    forms = " + ".join(episode.forms) or episode.form or ""
    parts += [f"K = {episode.size}", f"{episode.completed} of {episode.size} complete", forms]
    return "   ".join(part for part in [*parts, "" if episode.kind == "positive" else episode.kind] if part)


@dataclass(frozen=True, slots=True)
class _Look:
    episode: Episode
    letters: Lettering
    picture_height: int

    def colour(self, step: int) -> str:
        """Of the step that is active, counted from 1; grey when all are done."""
        return STEPS[(step - 1) % len(STEPS)] if step <= self.episode.size else FAINT

    def cell(self, draw: Any, left: int, upper: int, number: int) -> None:
        below = upper + self.picture_height
        seconds = f"#{number}   {number / self.episode.fps:.1f} s"
        draw.text((left, below + 10), seconds, INK, self.letters.small)
        if not self.episode.steps:
            return
        active, progress = int(self.episode.active()[number]), float(self.episode.progress()[number])
        ended = next((place for place, step in enumerate(self.episode.steps, 1) if step.end == number), None)
        if ended is not None:
            draw.rectangle((left, upper, left + CELL - 1, below - 1), outline=self.colour(ended), width=5)
            label = f"step {ended} done"
            wide = self.letters.small.getlength(label) + 14
            draw.rectangle((left, upper, left + wide, upper + 23), fill=self.colour(ended))
            draw.text((left + 7, upper + 4), label, PAPER, self.letters.small)
        draw.rectangle((left, below, left + CELL - 1, below + 4), fill=RULE)
        draw.rectangle((left, below, left + round((CELL - 1) * progress / 100), below + 4), fill=self.colour(active))
        at = f"a {min(active, self.episode.size)}/{self.episode.size}" if active <= self.episode.size else "all done"
        right = f"{at}   {progress:.0f} %"
        draw.text((left + CELL, below + 10), right, self.colour(active), self.letters.small, anchor="ra")
        sentence = self.episode.steps[active - 1].sentence if active <= self.episode.size else ""
        for place, line in enumerate(wrapped(sentence, self.letters.small, CELL, 2)):
            draw.text((left, below + 31 + 19 * place), line, FAINT, self.letters.small)

    def curve(self, draw: Any, left: int, upper: int, width: int, numbers: list[int]) -> None:
        frames = self.episode.frames
        lower = upper + CURVE

        def across(frame: float) -> float:
            return left + width * frame / max(frames - 1, 1)

        for share in (0.0, 0.5, 1.0):
            draw.line((left, lower - CURVE * share, left + width, lower - CURVE * share), RULE, 1)
        for number in numbers:
            draw.line((across(number), lower, across(number), lower + 5), FAINT, 1)
        draw.text((left, lower + 8), "frame 0", FAINT, self.letters.small)
        draw.text((left + width, lower + 8), f"{frames - 1}", FAINT, self.letters.small, anchor="ra")
        middle = "progress, 0 to 100 %, and the steps" if self.episode.steps else ""
        draw.text((left + width / 2, lower + 8), middle, FAINT, self.letters.small, anchor="ma")
        if not self.episode.steps:
            known = self.episode.steps is not None
            why = (
                "nothing of the instruction happens: progress stays 0"
                if known
                else "not annotated: no progress is known"
            )
            draw.text((left + 8, upper + 8), why, FAINT, self.letters.small)
            return
        begins = self.episode.begins
        ends = [min(step.end, frames - 1) for step in self.episode.steps]
        for place, (begin, end) in enumerate(zip(begins, ends, strict=True), 1):
            if begin >= frames:
                break
            draw.rectangle((across(begin), upper, across(end), lower), fill=_faded(self.colour(place)))
            if across(end) - across(begin) > 18:
                draw.text((across(begin) + 6, upper + 5), str(place), self.colour(place), self.letters.small)
        self._line(draw, self.episode.progress(), [(across(frame), lower) for frame in range(frames)])

    def _line(self, draw: Any, progress: NDArray[np.float64], foot: list[tuple[float, float]]) -> None:
        points = [(x, y - CURVE * value / 100) for (x, y), value in zip(foot, progress, strict=True)]
        draw.line(points if len(points) > 1 else [*points, *points], INK, 2, joint="curve")


def _faded(colour: str) -> str:
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{255 - (255 - part) // 7:02x}" for part in parts)
