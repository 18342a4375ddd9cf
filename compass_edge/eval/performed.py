"""A performed episode: its script and the exact state behind every frame, to ask what is true of any stretch of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.sim.acts import Act, Carry, Lift, Press, Tap, Watch, rests
from compass_edge.sim.catalogue import write
from compass_edge.sim.packing import shots_of
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot
from compass_edge.sim.things import BUTTON_UP

_DOWN = 0.005  # metres above where it rests: not yet lifted
_AWAY = 0.06  # metres of the fingertips above the table


@dataclass(frozen=True, slots=True)
class Performed:
    """Frames are numbers; a stretch holds its first and its last."""

    episode: Episode
    script: Script
    shots: list[Shot]

    @classmethod
    def of(cls, episode: Episode) -> Performed:
        task, _, seed = episode.id.partition("/")
        if "shots" not in episode.tracks or not seed.isdecimal():
            raise UsageError(f"Only an episode of the simulator tells the state of every frame, not '{episode.id}'.")
        return cls(episode, write(task, int(seed)), shots_of(episode.tracks["shots"]))

    def act(self, step: int) -> Act:
        """Of a step, from 0."""
        return self.script.steps[step].act

    def happened(self, act: Act, first: int, last: int) -> bool:
        """In this stretch it was carried out and finished, by its own thing or by one that looks the same."""
        return any(
            one.done(self.shots[first : end + 1]) for one in self._alike(act) for end in range(first + 1, last + 1)
        )

    def holds(self, act: Act, frame: int) -> bool:
        """What it leaves behind is there. Of most nothing is."""
        return not isinstance(act, Carry) or rests(self.shots[frame], act.thing, act.place)

    def began(self, act: Act, first: int, last: int) -> int | None:
        """The first frame of the stretch at which it is underway."""
        return next((at for at in range(first, last + 1) if act.underway(self.shots[first : at + 1])), None)

    def shows(self, act: Act, frame: int) -> bool:
        """This one frame is evidence of it: the cap is down, the block is up, the lamp shines."""
        return act.underway(self.shots[frame : frame + 1])

    def hides(self, act: Act, frame: int) -> bool:
        """Nothing of it can be seen in this frame."""
        shot = self.shots[frame]
        match act:
            case Press(button):
                return shot.travel[button.name] > BUTTON_UP
            case Tap():
                return shot.gripper[2] > _AWAY
            case Lift(thing, place):
                return shot.bodies[thing.name][2] < thing.rest(place.base) + _DOWN
            case Watch():
                return shot.lamp is None
        return not self.shows(act, frame)

    def _alike(self, act: Act) -> Iterator[Act]:
        yield act
        if isinstance(act, (Carry, Lift)):
            for thing in self.script.things:
                if (thing.kind, thing.colour) == (act.thing.kind, act.thing.colour) and thing.name != act.thing.name:
                    yield replace(act, thing=thing)
