"""A layout: the table as a task draws it, moved about by chance."""

from __future__ import annotations

from compass_edge.sim.dice import Dice
from compass_edge.sim.things import MAT_TOP, SLOT_PITCH, Kind, Place, Spot, Thing

_BASE: dict[str, float] = {"mat": MAT_TOP, "rack": 0.006, "box": 0.004}


class Layout:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.things: list[Thing] = []
        self._shift = (dice.uniform(-0.015, 0.015), dice.uniform(-0.02, 0.02))  # of the whole drawing

    def mat(self, x: float, y: float, colour: str, role: str = "mat") -> Thing:
        return self._add("mat", colour, role, self._moved(x, y), (x, y))

    def button(self, x: float, y: float, colour: str, role: str = "button") -> Thing:
        return self._add("button", colour, role, self._moved(x, y), (x, y))

    def box(self, x: float, y: float, colour: str = "gray", role: str = "box") -> Thing:
        return self._add("box", colour, role, self._moved(x, y), (x, y))

    def lamp(self, x: float, y: float) -> Thing:
        return self._add("lamp", "black", "lamp", self._moved(x, y), (x, y))

    def rack(self, x: float, y: float, slots: int, colour: str, role: str) -> Thing:
        return self._add("rack", colour, role, self._moved(x, y), (x, y), slots=slots)

    def slot(self, rack: Thing, index: int) -> Place:
        """From the left."""
        off = (index - (rack.slots - 1) / 2) * SLOT_PITCH
        name = {1: ("only",), 2: ("left", "right"), 3: ("left", "middle", "right")}[rack.slots][index]
        at, drawn = (rack.at[0], rack.at[1] + off), (rack.drawn_at[0], rack.drawn_at[1] + off)
        return Place(f"the {name} slot of the {rack.colour} rack", at, drawn, _BASE["rack"])

    def place(self, thing: Thing, name: str) -> Place:
        """On a mat, in a box."""
        inside = 0.05 if thing.kind == "box" else None
        return Place(name, thing.at, thing.drawn_at, _BASE[thing.kind], inside)

    def spot(self, x: float, y: float, name: str) -> Place:
        """On the bare table."""
        return Place(name, self._moved(x, y), (x, y))

    def block(self, place: Place, colour: str, role: str = "block", size: float = 0.022) -> Thing:
        return self._on(place, "block", colour, role, off=0.006, size=size)

    def tube(self, place: Place, colour: str, role: str = "tube") -> Thing:
        return self._on(place, "tube", colour, role)

    def cover(self, place: Place, colour: str, role: str = "cover") -> Thing:
        return self._on(place, "cover", colour, role, off=0.004)

    def toy(self, colour: str) -> None:
        """Something that has nothing to do with the task, where there is room for it."""
        for _ in range(40):
            spot = (self.dice.uniform(-0.16, 0.26), self.dice.uniform(-0.31, 0.31))
            if all(max(abs(spot[0] - thing.at[0]), abs(spot[1] - thing.at[1])) > 0.11 for thing in self.things):
                self._add("toy", colour, "toy", spot, spot, size=self.dice.uniform(0.015, 0.024))
                return

    def _on(self, place: Place, kind: Kind, colour: str, role: str, *, off: float = 0.0, size: float = 0.022) -> Thing:
        at = (place.at[0] + self.dice.uniform(-off, off), place.at[1] + self.dice.uniform(-off, off))
        return self._add(kind, colour, role, at, place.drawn_at, base=place.base, size=size)

    def _moved(self, x: float, y: float) -> Spot:
        own = (self.dice.uniform(-0.012, 0.012), self.dice.uniform(-0.012, 0.012))
        return (round(x + self._shift[0] + own[0], 4), round(y + self._shift[1] + own[1], 4))

    def _add(
        self, kind: Kind, colour: str, role: str, at: Spot, drawn_at: Spot, *, size: float = 0.022, slots: int = 0,
        base: float = 0.0,
    ) -> Thing:  # fmt: skip
        name = f"{colour}_{kind}_{1 + sum(thing.kind == kind for thing in self.things)}"
        at = (round(at[0], 4), round(at[1], 4))
        thing = Thing(name, kind, colour, role, at, drawn_at, size, slots, base)
        self.things.append(thing)
        return thing
