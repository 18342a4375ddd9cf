"""A run on footage: real models on threads, in real time, told to a report, a recorder and a journal."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from compass_edge.cli.age import AgeSampler
from compass_edge.cli.footage import Footage
from compass_edge.cli.interruption import Interruption
from compass_edge.cli.played_ticks import PlayedTicks
from compass_edge.cli.report import Report
from compass_edge.cli.watched_lanes import WatchedLanes
from compass_edge.data.episode import Episode as FilmedEpisode
from compass_edge.eval.metrics import mean_absolute_error
from compass_edge.eval.trace import Tracer
from compass_edge.frames.native import native
from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode, Subscriber
from compass_edge.loop.events import Event
from compass_edge.loop.journal import Journal
from compass_edge.loop.lanes import ROLES, Limits
from compass_edge.loop.memo import Speculation
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.recording import Recording
from compass_edge.loop.replay import checked
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.models import Image
from compass_edge.run_page.recorder import Recorder
from compass_edge.run_page.spans import Spans

Executor = Literal["sequential", "overlapped", "pool"]
_SLICE_NS = 50_000_000
_PATIENT = Limits(deadline_s=dict.fromkeys(ROLES, 1e6))  # for films: no event may depend on how fast a machine is


@dataclass(slots=True)
class FootageRun:
    """Wired up, and not begun. `go` once; then what came of it is in the report, the recorder and here."""

    footage: Footage
    models: Models
    settings: Settings
    executor: Executor
    report: Report
    journal: Journal | None = None
    stopped: bool = False
    seconds: float = 0.0  # that it took
    ages: dict[str, float] | None = None  # of what was published
    speculation: Speculation | None = None
    failure: str = ""  # why the footage broke off
    since_ns: int = field(default_factory=lambda: -native().monotonic_ns())  # its clock, ahead of the machine's
    spans: Spans = field(init=False)
    recorder: Recorder = field(init=False)
    tracer: Tracer | None = field(init=False)
    _lanes: WatchedLanes = field(init=False)
    _runner: Overlapped | None = field(init=False, default=None)
    _from_s: float = field(init=False, default=0.0)  # where in the footage it begins

    def __post_init__(self) -> None:
        self.report.live = self.footage.live
        self.spans = Spans(self.now_ns)
        self.recorder = Recorder(self.footage.at_s)
        self.tracer = Tracer(self.footage.episode) if self.footage.episode is not None else None

    def now_ns(self) -> int:
        """Since the run began; one that is resumed goes on where it was cut off."""
        return int(native().monotonic_ns()) + self.since_ns

    def go(self, recording: Recording | None = None) -> None:
        """Ctrl-C ends it between two events; what came before stands."""
        recording = recording or Recording()
        past = list(recording.events)
        for event, state in checked(past):
            self._recall(event, state)
        self._from_s = self.recorder.points[-1][0] if past else 0.0
        self.since_ns = (recording.at_ns[-1] if past else 0) - native().monotonic_ns()
        began_ns = self.now_ns()
        with contextlib.ExitStack() as stack:
            timed = self.spans.around(self.models)
            lanes = stack.enter_context(ThreadLanes(timed, None if self.footage.live else _PATIENT))
            self._lanes = WatchedLanes(lanes, _SLICE_NS)
            self._lanes.since_ns = self.since_ns
            try:
                self._run(timed, past, stack)
            except KeyboardInterrupt:
                if self.recorder.state is None:
                    raise
                self.stopped = True
                self.speculation = self._runner.speculation if self._runner is not None else None
            self.seconds = (self.now_ns() - began_ns) / 1e9
        self._add_missing_pictures()

    def _run(self, models: Models, past: list[Event], stack: contextlib.ExitStack) -> None:
        ticks = stack.enter_context(self.footage.open(self.settings, self.since_ns, self.recorder.newest + 1))
        self.recorder.ticks = ticks
        stop = stack.enter_context(Interruption())
        tellers: tuple[Subscriber, ...] = (self._tell,)
        if past:
            episode = Episode.resume(past, ticks, models.names(), tellers)
            first = ticks.after(-1) if self.footage.live and not episode.ended else None
            if first is not None:
                episode.restart(first, "the run was resumed")
        else:
            episode = Episode.begin(
                self.footage.instruction,
                ticks,
                models.names(),
                settings=self.settings,
                subscribers=tellers,
                source=self.footage.source,
            )

        def look() -> None:
            spent = self._runner.speculation if self._runner is not None else None
            self.report.look(self.now_ns(), self._lanes.busy(), spent)
            stop.check()

        self._lanes.look = look
        if isinstance(ticks, PlayedTicks):
            with AgeSampler(self.report.publisher, self.now_ns, lambda: not ticks.playing) as sampler:
                try:
                    self._execute(episode, models)
                finally:
                    self.ages = sampler.summary()
        else:
            self._execute(episode, models)
        self.failure = getattr(ticks, "failure", "")

    def _execute(self, episode: Episode, models: Models) -> None:
        if self.executor == "sequential":
            run_sequential(episode, self._lanes)
        elif self.executor == "pool":
            self.speculation = run_pool([episode], self._lanes, models)
        else:
            self._runner = Overlapped(
                episode, self._lanes, models, lambda progress: self.report.provisional(progress, self.now_ns())
            )
            self.speculation = self._runner.run()

    def _tell(self, event: Event, state: State) -> None:
        if self.journal is not None:
            self.journal.append(event)
        self.report.event(event, state, self.now_ns())
        self._watch(event, state)

    def _recall(self, event: Event, state: State) -> None:
        self.report.recall(event, state)
        self._watch(event, state)

    def _watch(self, event: Event, state: State) -> None:
        self.recorder(event, state)
        if self.tracer is not None:
            self.tracer(event, state)

    def _add_missing_pictures(self) -> None:
        missing, episode = self.recorder.without_pictures(), self.footage.episode
        if missing and episode is not None:
            pictures = episode.film.pictures(1, max(missing) + 1)
            self.recorder.add_pictures(
                (number, Image("", picture)) for number, picture in pictures if number in missing
            )

    @property
    def annotated(self) -> FilmedEpisode | None:
        episode = self.footage.episode
        return episode if episode is not None and episode.steps is not None else None

    @property
    def error(self) -> float | None:
        """The mean absolute error of the curve, if the footage is annotated and the run has ended."""
        episode = self.annotated
        if episode is None or self.tracer is None or self.recorder.state is None or self.recorder.state.outcome is None:
            return None
        values, _ = self.tracer.finished({}, {}, "linear")
        return mean_absolute_error(np.asarray(values), episode.progress())

    def summary(self) -> dict[str, Any]:
        footage_s = self.recorder.points[-1][0] - self._from_s
        return self.report.summary(
            self.seconds,
            stopped=self.stopped,
            speculation=self.speculation,
            lanes=self.spans.busy_s(),
            footage={
                "plan": [
                    {"outcome": step.outcome, "satisfied": step.satisfied, "at_s": step.at_s}
                    for step in self.recorder.plan
                ],
                "footage_s": footage_s,
                "computing_s": self.seconds,
                "speed": footage_s / self.seconds if self.seconds and not self.footage.live else None,
                "age_s": self.ages,
                "error": self.error,
                "failure": self.failure,
            },
        )
