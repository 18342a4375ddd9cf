"""A stage: the deeds that make sense on a table, and what a frame shows of them, in the Verifier's words.

All is a function of the simulator's state, and of nothing that the frames themselves could not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compass_edge.sim.acts import Carry, Lift, Press, Tap
from compass_edge.sim.deed import Deed, bare
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot
from compass_edge.sim.subtasks import deed_of, hunted, told
from compass_edge.sim.things import MOVABLE, NEAR, Place, Thing
from training.footage import HAND

_OVER = 0.055  # metres aside within which the hand is over something
_UP = 0.04  # above its rest a thing is up
_LOW = 0.045  # of the hand over a mat: it touches
_DOWN = -0.005  # of a cap
SIDES = ("leftmost", "middle", "rightmost")


@dataclass(frozen=True, slots=True)
class Part:
    """A deed with what it is about: the thing, and the places of a move. A thing of None: whichever block it is."""

    deed: Deed
    thing: Thing | None = None
    origin: Place | None = None
    goal: Place | None = None  # None with a move: whichever box it is


@dataclass(frozen=True, slots=True)
class Sight:
    """What a frame shows of a part, as words, and the states that decide."""

    text: str
    origin: str = ""
    goal: str = ""
    state: str = ""


class Stage:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.places = {place.name: place for place in script.places}
        self.things = [thing for thing in script.things if thing.kind != "toy"]
        self.movable = [thing for thing in self.things if thing.kind in MOVABLE]
        self.buttons = [thing for thing in self.things if thing.kind == "button"]
        self.boxes = [place for place in script.places if place.within is not None]
        self.deeds = [deed_of(step.sentence, step.facts) for step in script.steps]
        self.plan = hunted(script.task, self.deeds, script.instruction)

    def part(self, at: int) -> Part:
        """The script's own step, in an Orienter's words."""
        deed, act = told(self.script.task, self.deeds, at), self.script.steps[at].act
        if isinstance(act, Carry):
            goal = act.place if deed.goal == act.place.name else None
            return Part(deed, act.thing, self.places[deed.origin], goal)
        if isinstance(act, Lift):
            return Part(deed, None if "lamp" in deed.what else act.thing)
        return Part(deed, act.button if isinstance(act, Press) else act.mat if isinstance(act, Tap) else None)

    # -- other deeds -----------------------------------------------------------------------------------------------

    def others(self, shot: Shot) -> list[Part]:
        """What else could be asked for on this table as it is."""
        found = [Part(Deed("press", self.button(button)), button) for button in self.buttons]
        if self.script.task == "Q4":
            found += [
                Part(Deed("tap", f"the {thing.colour} mat"), thing) for thing in self.things if thing.kind == "mat"
            ]
        for thing in self.movable:
            if thing.kind == "block" and thing.size < 0.017:  # hidden under covers: nobody asks for it
                continue
            what = self.name_of(thing, shot)
            found.append(Part(Deed("lift", what), thing))
            origin = self.place_of(thing, shot)
            if origin is None:
                continue
            for goal in self.goals(thing):
                if goal.name != origin.name and thing_word(thing) != bare(goal.name):
                    into = "into" if goal.within is not None or "slot" in goal.name else "onto"
                    found.append(
                        Part(Deed("move", self._plain(thing), origin.name, goal.name, into), thing, origin, goal)
                    )
        return found

    def besides(self, part: Part) -> list[Part]:
        """The script's other steps, each once: the way back among them, which nothing on the table asks for yet."""
        found = {one.deed: one for one in map(self.part, range(len(self.script.steps)))}
        return [one for deed, one in found.items() if deed != part.deed]

    def goals(self, thing: Thing) -> list[Place]:
        """Where it could stand."""
        if thing.kind == "tube":
            return [place for place in self.places.values() if "slot" in place.name]
        return [place for place in self.places.values() if "slot" not in place.name]

    def button(self, button: Thing) -> str:
        if self.script.task == "R2":
            row = sorted(self.buttons, key=lambda one: one.at[1])
            return f"the {SIDES[row.index(button)]} button"
        return f"the {button.colour} button"

    def _plain(self, thing: Thing) -> str:
        return f"the tube with the {thing.colour} cap" if thing.kind == "tube" else f"the {thing.colour} {thing.kind}"

    def name_of(self, thing: Thing, shot: Shot) -> str:
        """With its side, where several look alike."""
        alike = self.alike(thing)
        if len(alike) == 1:
            return self._plain(thing)
        row = sorted(alike, key=lambda one: shot.bodies[one.name][1])
        sides = SIDES if len(row) == 3 else ("left", "right")
        return f"the {sides[row.index(thing)]} {thing.colour} {thing.kind}"

    def alike(self, thing: Thing) -> list[Thing]:
        """Whatever can be moved and looks like it, itself among them."""
        return [one for one in self.movable if (one.kind, one.colour) == (thing.kind, thing.colour)]

    def place_of(self, thing: Thing, shot: Shot) -> Place | None:
        """Where it stands, by name."""
        standing = [place for place in self.places.values() if self._stands(thing, place, shot)]
        return min(standing, key=lambda place: -place.base) if standing else None

    # -- what it is read off: numbers of things in a map ----------------------------------------------------------

    def number(self, thing: Thing) -> int:
        return next(at for at, one in enumerate(self.script.things) if one.name == thing.name)

    def spot(self, place: Place, shot: Shot) -> tuple[int, ...]:
        """What lies or stands at a place; of an empty slot, its rack."""
        lies = [thing for thing in self.things if thing.kind in ("mat", "box") and thing.at == place.at]
        lies += [thing for thing in self.movable if bare(place.name) == thing_word(thing)]
        stands = [thing for thing in self.movable if self._stands(thing, place, shot)]
        if not stands:
            lies += [thing for thing in self.things if place.name.endswith(f"slot of the {thing_word(thing)}")]
        return tuple(sorted({self.number(thing) for thing in (*lies, *stands)}))

    def grip(self, shot: Shot) -> tuple[int, ...]:
        """The hand and what it holds."""
        return (*([self.number(self._thing(shot.held))] if shot.held else []), HAND)

    def looked_at(self, part: Part, shot: Shot) -> list[tuple[int, ...]]:
        """Of each entry of what `sight` tells."""
        if part.deed.kind == "move":
            places = (part.origin, part.goal)
            return [*(self.spot(place, shot) if place is not None else () for place in places), self.grip(shot)]
        if part.deed.kind == "watch":
            return [tuple(self.number(thing) for thing in self.things if thing.kind == "lamp")]
        return [(self.number(part.thing),) if part.thing is not None else ()]

    # -- what a frame shows ----------------------------------------------------------------------------------------

    def sight(self, part: Part, shot: Shot, rest: float, under: str = "", before: Sequence[Shot] = ()) -> Sight:
        """`rest`: how high the thing is when it rests; `under`: what was seen beneath it when it was up; `before`: what else was shown."""
        match part.deed.kind:
            case "move":
                return self._move(part, shot, before)
            case "lift":
                return self._lift(part, shot, rest, under)
            case "press":
                assert part.thing is not None
                state = "down" if shot.travel[part.thing.name] < _DOWN else "up"
                return Sight(f"{bare(part.deed.what)}: {state}", state=state)
            case "tap":
                assert part.thing is not None
                state = "touched" if self.is_over(part.thing.at, shot) and shot.gripper[2] < _LOW else "free"
                return Sight(f"{bare(part.deed.what)}: {state}", state=state)
            case "watch":
                state = shot.lamp or "dark"
                return Sight(f"lamp: {state}{under}", state=state)

    def _move(self, part: Part, shot: Shot, before: Sequence[Shot]) -> Sight:
        assert part.thing is not None
        assert part.origin is not None
        goal = part.goal or self._nearest_box(part.thing, shot, before)
        there = self.content(part.origin, shot, part.thing)
        after = self.content(goal, shot, part.thing, before) if goal is not None else "not seen"
        name = bare(goal.name) if goal is not None else "gray boxes"
        hand = self.hand(shot)
        return Sight(f"{bare(part.origin.name)}: {there}; {name}: {after}; hand: {hand}", there, after, hand)

    def hand(self, shot: Shot) -> str:
        """Open, closed, or what it carries."""
        if shot.held and self.place_of(self._thing(shot.held), shot) is None:
            return thing_word(self._thing(shot.held))
        return "open" if shot.is_open else "closed"

    def content(self, place: Place, shot: Shot, subject: Thing, before: Sequence[Shot] = ()) -> str:
        """What stands there. The inside of a box cannot be seen: what is in it is known where the hand is seen over it, having
        just let go, or was seen over it with the thing in one of the frames `before`."""
        if place.within is not None:
            over = self.is_over(place.at, shot) or any(
                one.held == subject.name and self.is_over(place.at, one) for one in before
            )
            return thing_word(subject) if over and self._inside(subject, place, shot) else "not seen"
        there = [thing for thing in self.movable if self._stands(thing, place, shot)]
        if not there:
            return "empty"
        top = max(there, key=lambda thing: (thing.kind == "cover", shot.bodies[thing.name][2]))
        return thing_word(top) + (" gripped" if self.gripped(top, shot) else "")

    def _lift(self, part: Part, shot: Shot, rest: float, under: str) -> Sight:
        thing = part.thing
        if thing is None:
            blocks = [one for one in self.movable if one.kind == "block"]
            busy = [one for one in blocks if shot.bodies[one.name][2] > rest + _UP or self.gripped(one, shot)]
            if not busy:
                return Sight("blocks: down", state="down")
            thing = busy[0]
            name = thing_word(thing)
        else:
            name = bare(part.deed.what)
        raised = shot.bodies[thing.name][2] > rest + _UP and self.place_of(thing, shot) is None
        state = "up" if raised else "gripped" if self.gripped(thing, shot) else "down"
        beneath = self.beneath(thing, shot) if raised else under
        place = self.place_of(thing, shot) if state == "down" and part.thing is not None else None
        where = f" at {bare(place.name)}" if place is not None else ""
        return Sight(f"{name}: {state}{where}{beneath}", origin=where, state=state, goal=beneath)

    def beneath(self, thing: Thing, shot: Shot) -> str:
        """What a raised cover shows."""
        if thing.kind != "cover":
            return ""
        x, y, _ = shot.bodies[thing.name]
        near = [
            one
            for one in self.movable
            if one.kind == "block" and max(abs(shot.bodies[one.name][0] - x), abs(shot.bodies[one.name][1] - y)) < 0.05
        ]
        return f", {thing_word(near[0])} under it" if near else ""

    def _thing(self, name: str) -> Thing:
        return next(thing for thing in self.things if thing.name == name)

    def _stands(self, thing: Thing, place: Place, shot: Shot) -> bool:
        if place.within is not None:
            return False
        x, y, z = shot.bodies[thing.name]
        aside = max(abs(x - place.at[0]), abs(y - place.at[1]))
        return aside < NEAR[thing.kind] + 0.004 and abs(z - thing.rest(place.base)) < 0.014

    def gripped(self, thing: Thing, shot: Shot) -> bool:
        x, y, _ = shot.bodies[thing.name]
        near = max(abs(shot.gripper[0] - x), abs(shot.gripper[1] - y)) < 0.03
        low = shot.gripper[2] < shot.bodies[thing.name][2] + 0.075
        return shot.held == thing.name or thing.name in shot.touched or (near and low and not shot.is_open)

    def _inside(self, subject: Thing, box: Place, shot: Shot) -> bool:
        assert box.within is not None
        x, y, z = shot.bodies[subject.name]
        aside = max(abs(x - box.at[0]), abs(y - box.at[1]))
        return aside < box.within and z < subject.rest(box.base) + 0.05 and shot.held != subject.name

    def _nearest_box(self, subject: Thing, shot: Shot, before: Sequence[Shot]) -> Place | None:
        for place in self.boxes:
            if self.content(place, shot, subject, before) != "not seen" or self.is_over(place.at, shot):
                return place
        return None

    def is_over(self, at: Sequence[float], shot: Shot) -> bool:
        """The hand."""
        return max(abs(shot.gripper[0] - at[0]), abs(shot.gripper[1] - at[1])) < _OVER


def thing_word(thing: Thing) -> str:
    return f"{thing.colour} {thing.kind}"


def objects(stage: Stage, shot: Shot) -> list[tuple[str, tuple[int, ...]]]:
    """What stands on the table, for the Orienter's first look: movable things with their places, then the rest by kind. Each entry
    with the numbers of the things that it counts."""
    found: list[tuple[str, tuple[int, ...]]] = []
    counted: dict[str, tuple[int, ...]] = {}
    covered = [thing for thing in stage.movable if thing.kind == "cover"]
    for thing in sorted(
        stage.movable, key=lambda one: (one.kind != "block", one.kind, round(shot.bodies[one.name][1], 2))
    ):
        if thing.kind == "cover":
            counted[thing_word(thing)] = (*counted.get(thing_word(thing), ()), stage.number(thing))
            continue
        if any(max(abs(shot.bodies[one.name][0] - shot.bodies[thing.name][0]), abs(shot.bodies[one.name][1] - shot.bodies[thing.name][1])) < 0.03
               for one in covered):  # fmt: skip
            continue  # under a cover
        place = stage.place_of(thing, shot)
        name = thing_word(thing) + (f" at {bare(place.name)}" if place is not None else "")
        if all(name != known for known, _ in found):
            found.append((name, (stage.number(thing),)))
    still = [thing for thing in stage.things if thing.kind not in MOVABLE]
    for thing in sorted(still, key=lambda one: (one.kind, one.colour)):
        word = "lamp" if thing.kind == "lamp" else thing_word(thing)
        counted[word] = (*counted.get(word, ()), stage.number(thing))
    return [*found, *counted.items()]
