"""A deed: a step as a few words tell it. Which thing, from where, to where, and how that is said in a plan and to P and V.

The annotation's sentences carry all their context ("where it was at the start, move 2 of 3"); a deed is what is left for somebody
who only has to see whether it is done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from compass_edge.loop.plan import Completion, Subtask

DeedKind = Literal["move", "lift", "press", "tap", "watch"]
_SENTENCES: tuple[tuple[DeedKind, str], ...] = (
    ("move", r"Move (?P<what>.+?) from (?P<origin>.+?) (?P<into>onto|into) (?P<goal>.+)"),
    ("lift", r"Lift (?P<what>.+?) and put it back where it was"),
    ("press", r"Press (?P<what>.+?) once and release it"),
    ("tap", r"Tap (?P<what>.+?) with the closed gripper"),
    ("watch", r"Wait until (?P<what>the lamp) (?P<goal>.+)"),
)
_COMPLETIONS: dict[DeedKind, Completion] = {"press": "brief", "tap": "brief", "watch": "observation"}


@dataclass(frozen=True, slots=True)
class Deed:
    kind: DeedKind
    what: str  # "the red block"
    origin: str = ""  # of a move: "the white mat"
    goal: str = ""  # of a move; of a watch, what the lamp does
    into: str = "onto"

    @property
    def completion(self) -> Completion:
        return _COMPLETIONS.get(self.kind, "lasting")

    @property
    def outcome(self) -> str:
        """As a plan names it."""
        match self.kind:
            case "move":
                return f"Move {self.what} from {self.origin} {self.into} {self.goal}"
            case "lift":
                return f"Lift {self.what} and put it back where it was"
            case "press":
                return f"Press {self.what} once and release it"
            case "tap":
                return f"Tap {self.what} with the closed gripper"
            case "watch":
                return f"Wait until {self.what} {self.goal}"

    @property
    def criterion(self) -> str:
        thing = bare(self.what)
        match self.kind:
            case "move":
                return f"{thing} at {bare(self.goal)}"
            case "lift":
                return f"{thing} down again"
            case "press":
                return f"{thing} up again"
            case "tap":
                return "hand up again"
            case "watch":
                return "lamp dark again"

    def subtask(self) -> Subtask:
        """As O describes it to P and V."""
        thing = bare(self.what)
        match self.kind:
            case "move":
                before, tau = (
                    f"{thing} at {bare(self.origin)}",
                    f"{thing} from {bare(self.origin)} to {bare(self.goal)}",
                )
            case "lift":
                before, tau = f"{thing} down", f"{thing} up and down again"
            case "press":
                before, tau = f"{thing} up", f"{thing} down and up again"
            case "tap":
                before, tau = "hand up", f"hand down on {thing} and up again"
            case "watch":
                before, tau = "lamp dark", "lamp on and dark again"
        return Subtask(f"{self.outcome}.", before, tau, self.criterion, self.completion)


def bare(name: str) -> str:
    """Without its article."""
    return name.removeprefix("the ")


def parse(sentence: str, goal: str = "") -> Deed | None:
    """The deed that a sentence tells. `goal`: the place where its goal's name ends, if more may follow; None: none of ours."""
    text = sentence.rstrip(".")
    for kind, pattern in _SENTENCES:
        found = re.match(pattern, text)
        if found is None:
            continue
        parts = found.groupdict()
        if kind == "move" and goal and parts["goal"].startswith(goal):
            parts["goal"] = goal
        return Deed(kind, **parts)
    return None
