"""Memory: what V wrote when earlier steps were accepted, or would have written."""

from __future__ import annotations

from compass_edge.sim.deed import Deed, bare
from compass_edge.sim.shot import Shot
from training.footage import Footage
from training.judgement import judge, rest_of
from training.stage import Part, Stage, thing_word


def fact_of(stage: Stage, part: Part, film: Footage, begin: int, end: int) -> str:
    """What V wrote when the step was accepted."""
    rest = rest_of(part, film.shots, begin)
    middle = evidence(stage, part, film, begin, end, rest)
    during = film.shots[middle[len(middle) // 2]] if middle else film.shots[(begin + end) // 2]
    return judge(stage, part, film.shots[begin], during, film.shots[end], rest).candidate


def evidence(stage: Stage, part: Part, film: Footage, begin: int, end: int, rest: float) -> list[int]:
    """The frames that show the step being carried out; of a move into a box those that show into which."""
    wanted = {"lift": ("up",), "press": ("down",), "tap": ("touched",)}.get(part.deed.kind)
    boxes = stage.boxes if part.goal is None else [part.goal] if part.goal.within is not None else []
    found = []
    for frame in range(begin, end):
        shot = film.shots[frame]
        if wanted is None:
            over = not boxes or any(stage.is_over(box.at, shot) for box in boxes)
            shows = shot.lamp is not None if part.deed.kind == "watch" else shot.held is not None and over
        else:
            shows = stage.sight(part, shot, rest).state in wanted
        if shows:
            found.append(frame)
    return found


def imagined_fact(stage: Stage, deed: Deed, part: Part, seen: str, shot: Shot) -> str:
    """The same for a step that nobody filmed: as it would look."""
    what = bare(deed.what)
    match deed.kind:
        case "move":
            goal = bare(deed.goal)
            word = thing_word(part.thing) if part.thing is not None else what
            return f"{bare(deed.origin)}: empty; {goal}: {word}; hand: open"
        case "lift":
            place = stage.place_of(part.thing, shot) if part.thing is not None else None
            where = f" at {bare(place.name)}" if place is not None else ""
            return f"{what}: down{where}{seen}"
        case "press":
            return f"{what}: up"
        case "tap":
            return f"{what}: free"
        case "watch":
            return f"lamp: dark{seen}"
