"""Clips for the progress model: the frames since a step began, under its sentence or another one, and whole episodes."""

from __future__ import annotations

import numpy as np

from training.films import Dice, Films, Sample, tick_at
from training.footage import EVERY, Footage
from training.judgement import judge, rest_of
from training.memory import evidence
from training.nearness import COLUMNS, table
from training.pointing import pointed
from training.stage import Part, Stage, thing_word

# Where a thing's new place was hardest to tell: P did not come to 1 at the end of their steps on tuning films.
_HARD = frozenset(("S4", "S7", "Q2", "Q6", "R6"))
_WRONG = 0.4  # of clips that are shown under a sentence that they do not show
_LONG, _LONGEST = 40, 90  # ticks of an episode that are shown one by one
_OVER = 0.06  # metres aside within which a carried thing is over its goal


def clip(films: Films, dice: Dice, *, most: int = 40) -> Sample:
    """Under the step's sentence or another one."""
    right, *wrong = clips(films, dice, most=most)
    return wrong[dice.integers(len(wrong))] if wrong and dice.random() < _WRONG else right


def clips(films: Films, dice: Dice, *, most: int = 40) -> list[Sample]:
    """The frames since a step began, as the loop hands them to P, under the step's sentence and then under others.

    Nothing but the sentence tells one from the other.
    """
    if dice.random() < 0.1:
        return [_episode_clip(films, dice, most)]
    # Most clips have few frames: the frames of one clip teach much the same. The loop has every tick.
    most = min(most, (6, 10, 40)[int(dice.choice(3, p=(0.45, 0.25, 0.3)))])
    number, step = films.any_step(dice, _HARD)
    film, stage = films.films[number], films.stages[number]
    begin, end = films.begin(number, step), film.ends[step]
    following = film.ends[step + 1] if step + 1 < len(film.ends) else len(film.shots)
    # V may have accepted the step before a little early or late.
    start = max(tick_at(begin) + EVERY * int(dice.integers(-2, 5)), 0)
    start = start if start < end and start in films.place[number] else tick_at(begin)
    last = min(tick_at(end) + EVERY * int(dice.integers(0, 6)), following - 1, len(film.shots) - 1)
    ticks, part = films.ticks(number, start, last), stage.part(step)
    if len(ticks) > most:
        if most > 8 and dice.random() < 0.5:
            ticks = [*ticks[: -1 : -(-len(ticks) // most)], ticks[-1]]
        else:  # any of them, the first and the last always, and some that show it: what is brief would be missed
            shown = set(evidence(stage, part, film, begin, end, rest_of(part, film.shots, begin)))
            shows = [at for at, frame in enumerate(ticks) if frame in shown]
            kept = {
                0,
                len(ticks) - 1,
                *dice.permutation(shows)[:2].tolist(),
                *dice.permutation(len(ticks))[: most - 4].tolist(),
            }
            ticks = [ticks[at] for at in sorted(kept)]
    frames, since = (
        [(number, films.place[number][frame]) for frame in ticks],
        [(frame - start) // EVERY for frame in ticks],
    )
    shots = [film.shots[frame] for frame in ticks]
    sentence = part.deed.subtask().sentence
    if dice.random() < 0.3:
        sentence = film.script.steps[step].sentence  # with all its context
    truth = np.array([(min(frame, end) - start) / max(end - start, 1) for frame in ticks], np.float32)
    found = [Sample(None, frames, sentence=sentence, progress=truth, counts=np.ones(len(ticks), np.float32), case="right",
                    about=(part.deed.kind, since), pointed=pointed(stage, part),
                    nearness=table(stage, part, shots, rest_of(part, film.shots, begin)))]  # fmt: skip
    for other, diverges, case in _wrong(stage, part, film, begin, dice):
        known = np.array([float(frame >= diverges) for frame in ticks], np.float32)
        if _came_true(stage, other, film, begin, ticks):
            known[:] = 0.0
        if step + 1 < len(film.ends) and other.deed == stage.part(step + 1).deed:  # it begins where this one ends
            known[[frame > tick_at(end) for frame in ticks]] = 0.0
        known[0] = 1.0
        found.append(Sample(None, frames, sentence=other.deed.subtask().sentence, progress=np.zeros(len(ticks), np.float32),
                            counts=known, case=case, about=(other.deed.kind, since), pointed=pointed(stage, other),
                            nearness=table(stage, other, shots, rest_of(other, film.shots, begin))))  # fmt: skip
    return found


def _came_true(stage: Stage, part: Part, film: Footage, begin: int, ticks: list[int]) -> bool:
    rest = rest_of(part, film.shots, begin)
    shows = evidence(stage, part, film, begin, ticks[-1], rest)
    if part.deed.kind == "move" and part.thing is not None:  # the last one shows into which box it goes
        shows = [frame for frame in shows if film.shots[frame].held == part.thing.name]
    during = shows[-1] if shows else ticks[0]
    three = [film.shots[frame] for frame in (ticks[0], during, ticks[-1])]
    verdict = judge(stage, part, *three, rest).verdict
    if verdict == "already_done" and part.thing is not None:  # and has it been undone since?
        return stage.sight(part, three[-1], rest, before=three).goal.startswith(thing_word(part.thing))
    return verdict != "not_done"


def _wrong(stage: Stage, part: Part, film: Footage, begin: int, dice: Dice) -> list[tuple[Part, int, str]]:
    """Up to three other deeds, one of them about the same thing and one of the script, and the frames from which the film can no
    longer be doing them."""
    sentence, end = part.deed.subtask().sentence, next(one for one in film.ends if one > begin)
    others = [one for one in stage.others(film.shots[begin]) if one.deed.subtask().sentence != sentence]
    same = [
        one
        for one in others
        if one.thing is not None and one.thing == part.thing and not one.deed.kind == part.deed.kind == "lift"
    ]
    rest = [one for one in others if one.thing is None or one.thing != part.thing]
    found = []
    if same:
        found.append((same[dice.integers(len(same))], _parted(part, film, begin, end), "same thing"))
    if rest:
        shows = evidence(stage, part, film, begin, end, rest_of(part, film.shots, begin))
        found.append((rest[dice.integers(len(rest))], shows[0] if shows else end, "other thing"))
    steps = [one for one in stage.besides(part) if one.deed.subtask().sentence != sentence]
    if steps:
        found.append((steps[dice.integers(len(steps))], end, "other step"))
    return found


def _parted(part: Part, film: Footage, begin: int, end: int) -> int:
    """The frame from which it is seen that the thing goes elsewhere, or nowhere."""
    assert part.thing is not None
    name = part.thing.name
    if part.deed.kind != "move" or part.goal is None or name not in film.shots[begin].bodies:
        return end
    x, y = part.goal.at
    where = [film.shots[frame].bodies[name] for frame in range(begin, end)]
    near = (begin + at for at, (a, b, _) in enumerate(where) if max(abs(a - x), abs(b - y)) < _OVER)
    return next(near, end)


def _episode_clip(films: Films, dice: Dice, most: int) -> Sample:
    """An episode under its instruction, as RoboMeter is trained: what a progress model knows without context.

    All of it in few frames, or, where it was filmed so, tick by tick from its beginning, as the evaluation shows it.
    """
    number = int(dice.integers(len(films.films)))
    film = films.films[number]
    ends = np.array(film.ends)
    ticks = next((at for at, frame in enumerate(film.frames) if frame != EVERY * at), len(film.frames))
    if ticks >= _LONG and dice.random() < 0.6:
        chosen = list(range(0, int(dice.integers(_LONG // 2, min(ticks, _LONGEST) + 1)), int(dice.integers(1, 3))))
    else:
        last = int(dice.integers(len(film.frames) // 2, len(film.frames)))
        chosen = [at for at, frame in enumerate(film.frames[: last + 1]) if frame % 16 == 0] or [0]
        chosen = chosen[:: -(-len(chosen) // most)]
    truth = []
    for at in chosen:
        frame = film.frames[at]
        done = int(np.searchsorted(ends, frame, side="right"))
        begin = 0 if done == 0 else ends[done - 1]
        local = (frame - begin) / (ends[done] - begin) if done < len(ends) else 0.0
        truth.append((done + local) / len(ends))
    instruction = film.script.instruction
    return Sample(None, [(number, at) for at in chosen], sentence=instruction, progress=np.array(truth, np.float32),
                  counts=np.ones(len(chosen), np.float32), case="episode", about=("episode", list(range(len(chosen)))),
                  nearness=np.full((len(chosen), COLUMNS), np.nan, np.float32))  # fmt: skip
