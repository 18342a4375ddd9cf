"""The recorder: listens to the events of a run, and keeps what its page will show. Pictures are kept small, as JPEG."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from compass_edge.engines.picture_url import picture_url
from compass_edge.errors import UsageError
from compass_edge.loop.events import CompletionProposed, Event, ReplyInvalid, Verified
from compass_edge.loop.mark import Mark
from compass_edge.loop.progress import progress_of
from compass_edge.loop.state import State
from compass_edge.loop.ticks import Ticks
from compass_edge.models import Image
from compass_edge.run_page.record import PlanStep, Point, Seen, Verdict

_SIDE = 288  # pixels of a picture
_QUALITY = 80
_MOST = 20_000  # points: a camera may run for days
_WHY = {"high": "a high score", "peak": "the peak before a drop", "end": "the end of the video"}


@dataclass(frozen=True, slots=True)
class _Proposed:
    step: int
    step_id: int
    sentence: str
    tau: str
    marks: tuple[Mark, Mark, Mark]  # start, during, candidate
    reason: str
    score: float


class Recorder:
    """A subscriber. `ticks` are those of the run, once they are open; without them no picture is kept."""

    def __init__(self, at_s: Callable[[Mark], float]) -> None:
        self.ticks: Ticks | None = None
        self.verdicts: list[Verdict] = []
        self.state: State | None = None
        self._at_s = at_s
        self._newest: Mark | None = None
        self._points: dict[int, Point] = {}
        self._proposed: _Proposed | None = None
        self._completed: dict[int, float] = {}  # by step
        self._pictures: dict[int, str] = {}  # by frame

    def __call__(self, event: Event, state: State) -> None:
        """A point is what stands when all is done that needs no later frame: no hindsight."""
        self.state = state
        mark = getattr(event, "frame", None)  # Stalled and Ended have none
        if mark is not None and (self._newest is None or mark.seq > self._newest.seq):
            self._newest = mark
        if self._newest is not None:
            self._points[self._newest.seq] = (self._at_s(self._newest), progress_of(state).value)
            if len(self._points) > _MOST:
                self._points = dict(list(self._points.items())[::2])
        if isinstance(event, CompletionProposed):
            self._propose(event, state)
        elif isinstance(event, Verified):
            said = (event.start, event.during, event.candidate)
            self._rule(event.accepted, event.verdict, event.change, said)
        elif isinstance(event, ReplyInvalid) and event.asked == "verify" and state.the_step.proposal is None:
            self._rule(False, "no valid reply: a rejection", event.detail, ("", "", ""))

    @property
    def newest(self) -> int:
        """The latest frame that an event has spoken of; -1 before the first one."""
        return -1 if self._newest is None else self._newest.seq

    @property
    def points(self) -> list[Point]:
        return [point for _, point in sorted(self._points.items())]

    @property
    def plan(self) -> list[PlanStep]:
        if self.state is None or self.state.plan is None:
            return []
        return [
            PlanStep(step.outcome, step.criterion, step.satisfied, self._completed.get(step.id))
            for step in self.state.plan.steps
        ]

    def without_pictures(self) -> set[int]:
        """Frames that verdicts speak of, and that were not there to be kept: of a run that was resumed."""
        shown = (seen for one in self.verdicts for seen in (one.start, one.during, one.candidate))
        return {seen.frame for seen in shown if not seen.picture}

    def add_pictures(self, images: Iterable[tuple[int, Image]]) -> None:
        self._pictures.update((number, _small(image)) for number, image in images)
        self.verdicts = [
            replace(
                one, start=self._with(one.start), during=self._with(one.during), candidate=self._with(one.candidate)
            )
            for one in self.verdicts
        ]

    def _with(self, seen: Seen) -> Seen:
        return seen if seen.picture else replace(seen, picture=self._pictures.get(seen.frame, ""))

    def _propose(self, event: CompletionProposed, state: State) -> None:
        active = state.the_step
        marks = (active.began, event.during, event.frame)
        for mark in marks:
            self._keep(mark.seq)
        self._proposed = _Proposed(
            state.the_plan.position, active.step_id, active.subtask.sentence, active.subtask.tau, marks, event.reason,
            event.score,
        )  # fmt: skip

    def _keep(self, seq: int) -> None:
        """While the loop still holds the frame."""
        if self.ticks is None or seq in self._pictures:
            return
        try:
            self._pictures[seq] = _small(self.ticks.get(seq).image)
        except UsageError:  # without pixels: a scripted world
            self._pictures[seq] = ""

    def _rule(self, accepted: bool, verdict: str, change: str, said: tuple[str, str, str]) -> None:
        proposed = self._proposed
        if proposed is None:
            return
        start, during, candidate = (
            Seen(mark.seq, self._at_s(mark), words, self._pictures.get(mark.seq, ""))
            for mark, words in zip(proposed.marks, said, strict=True)
        )
        self.verdicts.append(
            Verdict(
                proposed.step, proposed.sentence, proposed.tau, _WHY[proposed.reason], proposed.score, accepted, verdict,
                change, start, during, candidate,
            )
        )  # fmt: skip
        if accepted:
            self._completed[proposed.step_id] = candidate.at_s
        self._proposed = None


def _small(image: Image) -> str:
    return picture_url(image, max_side=_SIDE, quality=_QUALITY)
