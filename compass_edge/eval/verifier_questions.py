"""Questions for the Verifier with known answers, about one episode of the simulator.

Two steps that were carried out, which V should accept, and two stretches in which the step it is told was not, or cannot be
seen to have been. Which, is drawn; what is true, is asked of the state behind the frames. Frames are ticks, as in the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from compass_edge.data.episode import Episode
from compass_edge.eval.performed import Performed
from compass_edge.eval.untrue import other_steps, other_targets
from compass_edge.eval.wording import Wording, subtasks_of
from compass_edge.loop.plan import Fact, Subtask
from compass_edge.sim.acts import Carry
from compass_edge.sim.dice import Dice

# What the frames show: the step, just done; before it; its middle; another step, or another goal; what it leaves behind, all
# along; and a brief step whose middle frame shows nothing of it, so that nobody can tell.
Case = Literal["finished", "not started", "half way", "wrong sentence", "wrong target", "already true", "no evidence"]
CASES: tuple[Case, ...] = get_args(Case)
ACCEPTED: Case = "finished"
EACH = 2  # questions of an episode that should be accepted, and as many that should not
_LONGEST = 12  # ticks of a stretch in which nothing new happens


@dataclass(frozen=True, slots=True)
class Asked:
    case: Case
    step: int  # of the episode, from 0: the one that the frames are of
    subtask: Subtask
    memory: tuple[Fact, ...]
    start: int
    during: int
    candidate: int

    @property
    def right(self) -> bool:
        """It should be accepted."""
        return self.case == ACCEPTED

    @property
    def frames(self) -> tuple[int, int, int]:
        return self.start, self.during, self.candidate


def verifier_questions(episode: Episode, every: int, wording: Wording) -> list[Asked]:
    """The same for the same episode, always."""
    stage, dice = _Stage(Performed.of(episode), every, wording), Dice(episode.id, "verifier")
    found = list(islice(filter(None, map(stage.finished, dice.shuffled(range(episode.size)))), EACH))
    builders: list[Callable[[int], Asked | None]] = [
        stage.not_started,
        stage.half_way,
        lambda step: stage.wrong(step, dice, "wrong sentence"),
        lambda step: stage.wrong(step, dice, "wrong target"),
        stage.already,
    ]
    # Few episodes have brief steps: where there is one it is asked about, and all cases come about equally often.
    order = [lambda step: stage.no_evidence(step, dice), *dice.shuffled(builders)]
    drawn = (next(filter(None, map(build, dice.shuffled(range(episode.size)))), None) for build in order)
    return [*found, *islice(filter(None, drawn), len(found))]


@dataclass(frozen=True, slots=True)
class _Stage:
    performed: Performed
    every: int
    wording: Wording

    def finished(self, step: int) -> Asked | None:
        """Of an act that leaves no trace the middle frame is evidence, if any tick is."""
        stretch, act = self._stretch(step), self.performed.act(step)
        if stretch is None:
            return None
        between = self._between(*stretch)
        if not isinstance(act, Carry):
            between = [at for at in between if self.performed.shows(act, at)]
        return self._asked("finished", step, stretch, between[len(between) // 2]) if between else None

    def not_started(self, step: int) -> Asked | None:
        start, begun = self._start(step), self._underway(step)
        before = self._ticks(start + 1, begun - 1) if begun is not None else ()
        return self._halved("not started", step, start, before[-1]) if before else None

    def half_way(self, step: int) -> Asked | None:
        start, begun, end = self._start(step), self._underway(step), self._end(step)
        act = self.performed.act(step)
        if begun is None or begun <= start:
            return None
        middle = [at for at in self._ticks(begun, end - 1) if self.performed.shows(act, at)]
        return self._halved("half way", step, start, middle[len(middle) // 2]) if middle else None

    def wrong(self, step: int, dice: Dice, case: Case) -> Asked | None:
        right = self.finished(step)
        if right is None:
            return None
        first, last = right.start, right.candidate
        untrue = (
            other_steps(self.performed, step, first, last, self.wording)
            if case == "wrong sentence"
            else other_targets(self.performed, step, first, last)
        )
        if not untrue:
            return None
        return Asked(case, step, dice.choice(untrue), right.memory, *right.frames)

    def already(self, step: int) -> Asked | None:
        """It was done, and from then on nothing of it happens again."""
        act, start = self.performed.act(step), self._tick(self._end(step) + 1)
        last = min(start + _LONGEST * self.every, self.performed.episode.frames - 1)
        quiet = [
            at
            for at in self._ticks(start + 1, last)
            if self.performed.holds(act, at) and self.performed.began(act, start, at) is None
        ]
        if not quiet or not self.performed.holds(act, start):  # the last tick of the film has none after it
            return None
        return self._halved("already true", step, start, quiet[-1])

    def no_evidence(self, step: int, dice: Dice) -> Asked | None:
        right = self.finished(step)
        if right is None or right.subtask.completion != "brief":
            return None
        act = self.performed.act(step)
        blank = [at for at in self._between(right.start, right.candidate) if self.performed.hides(act, at)]
        return self._asked("no evidence", step, (right.start, right.candidate), dice.choice(blank)) if blank else None

    def _stretch(self, step: int) -> tuple[int, int] | None:
        """From the step's first tick to the one at which it is done. None: it goes by between two ticks."""
        start, candidate = self._start(step), self._tick(self._end(step))
        act, following = self.performed.act(step), self._underway(step + 1)
        late = candidate >= self.performed.episode.frames or (following is not None and candidate >= following)
        if late or not self.performed.happened(act, start, candidate) or not self.performed.holds(act, candidate):
            return None
        return start, candidate

    def _asked(self, case: Case, step: int, stretch: tuple[int, int], during: int) -> Asked:
        told = subtasks_of(self.performed.episode, self.wording)
        memory = tuple(Fact(at + 1, one.after) for at, one in enumerate(told[:step]))
        return Asked(case, step, told[step], memory, stretch[0], during, stretch[1])

    def _halved(self, case: Case, step: int, start: int, candidate: int) -> Asked:
        between = self._between(start, candidate)
        return self._asked(case, step, (start, candidate), between[len(between) // 2] if between else start)

    def _start(self, step: int) -> int:
        return self._tick(self.performed.episode.begins[step])

    def _end(self, step: int) -> int:
        return self.performed.episode.truth[step].end

    def _underway(self, step: int) -> int | None:
        """The frame at which it is; None if it is no step of the film."""
        if step >= self.performed.episode.size:
            return None
        return self.performed.began(self.performed.act(step), self.performed.episode.begins[step], self._end(step))

    def _tick(self, frame: int) -> int:
        """The first tick that is not before it."""
        return -(-frame // self.every) * self.every

    def _ticks(self, first: int, last: int) -> Sequence[int]:
        return range(self._tick(first), last + 1, self.every)

    def _between(self, start: int, candidate: int) -> list[int]:
        return list(self._ticks(start + 1, candidate - 1))
