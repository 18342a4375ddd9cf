"""Steps from texts and the frames they end at: all that most data sets know of their steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compass_edge.data.episode import StepTruth
from compass_edge.errors import IntegrityError


def steps_of(spans: Sequence[tuple[str, int]], frames: int, where: str) -> tuple[StepTruth, ...]:
    """Text and end of each step, in order. A text that comes more than once is told apart by which time this is.

    A step that ends with the film (end = frames) is complete at the last frame: there is no later one to show it.
    """
    before = 0
    for text, end in spans:
        if end <= before:
            raise IntegrityError(
                f"{where}: the step {text!r} should end after frame {before}, where the one before it did, and it ends at {end}."
            )
        before = end
    if before > frames:
        raise IntegrityError(
            f"{where}: the steps are annotated up to frame {before}, and the film has {frames} frames."
        )
    total, seen = Counter(text for text, _ in spans), Counter[str]()
    steps: list[StepTruth] = []
    for text, end in spans:
        seen[text] += 1
        sentence, repeated = text, total[text] > 1
        if repeated:
            sentence = f"{text.rstrip().rstrip('.')}, for the {ordinal(seen[text])} time."
        facts = {"text": text, "occurrence": seen[text], "occurrences": total[text]} if repeated else {}
        last_frame = end == frames and (steps[-1].end if steps else 0) < frames - 1
        steps.append(
            StepTruth(sentence, frames - 1 if last_frame else end, ("recurrence",) if repeated else (), facts=facts)
        )
    return tuple(steps)


def ordinal(number: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
    if 1 <= number <= len(words):
        return words[number - 1]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
