"""A script: what happens in an episode, and what is to be known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compass_edge.data.episode import Form
from compass_edge.loop.plan import Completion
from compass_edge.sim.acts import Act, Carry, Lift, Press, Tap, Watch
from compass_edge.sim.look import Look
from compass_edge.sim.manner import Manner
from compass_edge.sim.things import Place, Thing


@dataclass(frozen=True, slots=True)
class Step:
    act: Act
    sentence: str
    before: str
    tau: str
    after: str
    forms: tuple[Form, ...]
    completion: Completion = "lasting"
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Script:
    task: str
    seed: int
    form: Form
    instruction: str
    things: tuple[Thing, ...]
    places: tuple[Place, ...]
    steps: tuple[Step, ...]
    look: Look
    manner: Manner
    switches: Mapping[str, str] = field(default_factory=dict)  # buttons of the lamp, and its colour
    variant: str = ""  # what the instruction asks for beyond its task, such as how often: scenes compare within it


def carry(
    thing: Thing, what: str, origin: str, place: Place, forms: Sequence[Form], note: str = "", /, **facts: Any
) -> Step:
    """`origin` is where it is now, in words."""
    into = "into" if place.within is not None or "slot" in place.name else "onto"
    at = "in" if into == "into" else "on"
    return Step(
        Carry(thing, place),
        f"Move {what} from {origin} {into} {place.name}{note}.",
        f"{_capital(what)} is at {origin}.",
        f"{_capital(what)} leaves {origin} and comes to rest {at} {place.name}.",
        f"{_capital(what)} rests {at} {place.name} and the gripper is empty.",
        tuple(forms),
        "lasting",
        {"object": thing.name, "from": origin, "to": place.name, **facts},
    )


def lift(thing: Thing, what: str, place: Place, forms: Sequence[Form], note: str = "", /, **facts: Any) -> Step:
    return Step(
        Lift(thing, place),
        f"Lift {what} and put it back where it was{note}.",
        f"{_capital(what)} stands at its place.",
        f"{_capital(what)} is raised clear of its place and set down there again.",
        f"{_capital(what)} stands at its place again and the gripper is empty.",
        tuple(forms),
        "lasting",
        {"object": thing.name, **facts},
    )


def press(button: Thing, what: str, forms: Sequence[Form], note: str = "", /, **facts: Any) -> Step:
    return Step(
        Press(button),
        f"Press {what} once and release it{note}.",
        f"{_capital(what)} is up and the gripper is not on it.",
        f"The closed gripper pushes {what} down and rises again.",
        f"{_capital(what)} is up again after having been down.",
        tuple(forms),
        "brief",
        {"object": button.name, **facts},
    )


def tap(mat: Thing, what: str, forms: Sequence[Form], note: str = "", /, **facts: Any) -> Step:
    return Step(
        Tap(mat),
        f"Tap {what} with the closed gripper{note}.",
        f"The gripper is away from {what}.",
        f"The closed gripper comes down on {what} and rises again.",
        f"The gripper is above {what} again after having touched it.",
        tuple(forms),
        "brief",
        {"object": mat.name, **facts},
    )


def watch(colours: Sequence[str], sentence: str, forms: Sequence[Form], /, **facts: Any) -> Step:
    return Step(
        Watch(tuple(colours)),
        sentence,
        "The lamp is dark and has not shone yet.",
        "The lamp lights up and goes dark again.",
        "The lamp is dark after it has shone.",
        tuple(forms),
        "observation",
        {"object": "lamp", **facts},
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
