"""Negatives: a film with an instruction that it does not match. It does less, more, or something else; the truth is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_edge.data.episode import Episode, Kind

SEED = 100
_NEAR = 0.5  # of 100: half a frame of a step that is cut in its middle


@dataclass(frozen=True, slots=True)
class Negative:
    id: str
    kind: Kind
    base: str  # the task whose film it is
    instruction: Callable[[str], str]  # from that of the film
    steps: int  # of the film's that are asked for; what is cut short: that are complete
    half: bool = False  # cut in the middle of the step after those
    count: tuple[int, int] | None = None  # occurrences that the film's sentences speak of, and that are asked for
    ends_at: float = 0.0  # the progress that is true at the end


def _same(instruction: str) -> str:
    return instruction


def _instead(text: str) -> Callable[[str], str]:
    return lambda _: text


def _first_three(instruction: str) -> str:
    head, _, order = instruction.rstrip(".").partition(" in the order ")
    return f"{head} in the order {', '.join(order.split(', ')[:3])}."


NEGATIVES = {
    negative.id: negative
    for negative in (
        Negative("E1", "early_stop", "R1", _same, 5, ends_at=62.5),
        Negative("E2", "early_stop", "S2", _same, 3, ends_at=50.0),
        Negative("E3", "early_stop", "Q5", _same, 7, ends_at=87.5),
        Negative("E4", "early_stop", "R3", _same, 3, half=True, ends_at=43.75),
        Negative("E5", "early_stop", "S6", _same, 3, ends_at=50.0),
        Negative("X1", "extra_steps", "R1", lambda text: text.replace("8 times", "5 times"), 5, count=(8, 5), ends_at=100.0),
        Negative("X2", "extra_steps", "S2",
                 lambda text: text.replace("each", "the leftmost").replace(", one at a time, from left to right", ""), 2,
                 ends_at=100.0),
        Negative("X3", "extra_steps", "Q1", _first_three, 3, count=(6, 3), ends_at=100.0),
        Negative("X4", "extra_steps", "R7", lambda text: text.replace("3 times each", "once each"), 2, count=(3, 1), ends_at=100.0),
        Negative("X5", "extra_steps", "Q6", lambda text: text.partition(", then")[0] + ".", 2, ends_at=100.0),
        Negative("M1", "mismatch", "S2", _instead("Fold the towel twice and put it in the drawer."), 0),
        Negative("M2", "mismatch", "R1", _instead("Pour water into the three cups from left to right."), 0),
        Negative("M3", "mismatch", "Q2", _instead("Open the microwave, put the mug in, and close it."), 0),
        Negative("M4", "mismatch", "R3", _instead("Wipe the whiteboard from left to right three times."), 0),
        Negative("M5", "mismatch", "Q5", _instead("Plug in the charger and unplug it, twice."), 0),
    )
}  # fmt: skip


def negative_fields(negative: Negative, base: dict[str, Any], video: str) -> dict[str, Any]:
    """The annotation, made from that of the film. `video` is the film's path as seen from the new annotation."""
    steps: list[dict[str, Any]] = base["steps"]
    frames: int = base["frames"]
    tracks = dict(base["tracks"])
    if negative.kind == "early_stop":
        last = steps[negative.steps - 1]["end"]
        frames = 1 + ((last + steps[negative.steps]["end"]) // 2 if negative.half else last)
    elif negative.kind == "extra_steps":
        steps = [_recounted(step, negative.count) for step in steps[: negative.steps]]
        done = steps[-1]["end"]
        tracks["path"] = [value if frame < done else 0.0 for frame, value in enumerate(tracks["path"])]
    else:
        steps = []
        tracks["path"] = [0.0] * frames
    return {
        **base,
        "id": f"{negative.id}/{SEED}",
        "task": negative.id,
        "instruction": negative.instruction(base["instruction"]),
        "video": video,
        "frames": frames,
        "kind": negative.kind,
        "steps": steps,
        "tracks": tracks,
    }


def _recounted(step: dict[str, Any], count: tuple[int, int] | None) -> dict[str, Any]:
    if count is None:
        return step
    old, new = count
    facts = {key: new if (key, value) == ("of", old) else value for key, value in step["facts"].items()}
    return {**step, "sentence": step["sentence"].replace(f" of {old}", f" of {new}"), "facts": facts}


def judge_negative(episode: Episode) -> list[str]:
    """What is wrong with its target curve, a sentence each."""
    negative, curve = NEGATIVES[episode.task], episode.progress()
    wrong = []
    if abs(curve[-1] - negative.ends_at) > _NEAR:
        wrong.append(f"{episode.id} ends at {curve[-1]:.2f}, and {negative.ends_at:.2f} is true.")
    if np.any(np.diff(curve) < 0):
        wrong.append(f"{episode.id} has a target that falls.")
    if episode.kind != negative.kind or episode.instruction == "":
        wrong.append(f"{episode.id} must be of the kind {negative.kind} and have an instruction.")
    return wrong
