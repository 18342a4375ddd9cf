"""A scripted run: world, models, lanes, executor, journal, cassette and report, put together as the arguments say."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from compass_edge.cli.interruption import interruptible
from compass_edge.cli.report import Report, report_on
from compass_edge.cli.run_journal import must_match, open_journal
from compass_edge.cli.watched_lanes import WatchedLanes
from compass_edge.errors import UsageError
from compass_edge.loop.call import Models
from compass_edge.loop.cassette import Cassette
from compass_edge.loop.cassette_models import played, recorded
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Event
from compass_edge.loop.journal import Journal
from compass_edge.loop.lanes import ROLES
from compass_edge.loop.memo import Speculation
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.replay import checked
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.scripted.models import ScriptedLatency, scripted_models
from compass_edge.scripted.scenario import BOARDS, Scenario, load
from compass_edge.scripted.ticks import ScriptedTicks

_LOOKS_A_SECOND = 20


@dataclass(slots=True)
class Run:
    """A scripted run that is wired up, and not begun."""

    scenario: Scenario
    executor: str
    report: Report
    lanes: WatchedLanes
    models: Models
    journal: Journal | None = None
    speculation: Callable[[], Speculation | None] = lambda: None

    def on_event(self, event: Event, state: State) -> None:
        if self.journal is not None:
            self.journal.append(event)
        self.report.event(event, state, self.lanes.now_ns())

    def episode(self, settings: Settings, past: list[Event]) -> Episode:
        world = self.scenario.world
        ticks = ScriptedTicks(world, self.lanes.now_ns)
        if not past:
            return Episode.begin(
                world.instruction,
                ticks,
                self.models.names(),
                settings=settings,
                subscribers=(self.on_event,),
                source=self.scenario.source,
            )
        for event, state in checked(past):
            self.report.recall(event, state)
        return Episode.resume(past, ticks, self.models.names(), (self.on_event,))

    def look(self) -> None:
        self.report.look(self.lanes.now_ns(), self.lanes.busy(), self.speculation())

    def go(self, episode: Episode) -> Speculation | None:
        if self.executor == "sequential":
            run_sequential(episode, self.lanes)
            return None
        if self.executor == "pool":
            return run_pool([episode], self.lanes, self.models)
        runner = Overlapped(
            episode, self.lanes, self.models, lambda progress: self.report.provisional(progress, self.lanes.now_ns())
        )
        self.speculation = lambda: runner.speculation
        return runner.run()


def _models(arguments: argparse.Namespace, scenario: Scenario, warn: Callable[[str], None]) -> Models:
    models = scripted_models(scenario.world)
    if arguments.record:
        return recorded(Cassette.open(arguments.record, warn=warn), models)
    if arguments.play:
        return played(Cassette.open(arguments.play, warn=warn), models.names())
    return models


def _settings(arguments: argparse.Namespace, scenario: Scenario) -> Settings:
    settings = replace(scenario.settings, tau=arguments.tau)
    if arguments.settings is not None:
        settings = settings.overlaid(arguments.settings)
    if settings.every != scenario.world.every:
        raise UsageError(
            f"A tick of the scenario '{scenario.name}' is every {scenario.world.every} frames, and {settings.every} came."
        )
    return settings


def _warn(text: str) -> None:
    print(f"compass-edge: {text}", file=sys.stderr)


def run_scripted(arguments: argparse.Namespace) -> int:
    scenario = load(arguments.scripted)
    settings = _settings(arguments, scenario)
    seconds = BOARDS[arguments.board] if arguments.board else scenario.latency
    board = next((name for name, known in BOARDS.items() if known == seconds), "")
    latencies = f"{board}, inferred from published rates, not measured by us" if board else "the scenario's"
    models = _models(arguments, scenario, _warn)
    virtual = VirtualLanes(models, ScriptedLatency(seconds, scenario.world), pace=arguments.speed)
    lanes = WatchedLanes(virtual, arguments.speed and round(arguments.speed / _LOOKS_A_SECOND * 1e9))
    title = f"{scenario.name}, {arguments.executor}, {board or 'its own'} latencies (not measured by us)"
    report = report_on(title, sys.stdout, arguments.json)
    run = Run(scenario, arguments.executor, report, lanes, models)
    lanes.look = run.look
    with contextlib.ExitStack() as stack:
        run.journal, recording = open_journal(arguments.journal, arguments.resume, lanes.now_ns, _warn)
        if run.journal is not None:
            stack.enter_context(run.journal)
        past = list(recording.events)
        if past:
            task = scenario.world.instruction
            must_match(past, arguments.journal, scenario.source, task, settings, "scenario")
            lanes.since_ns = recording.at_ns[-1]
        stack.enter_context(report)
        stack.enter_context(interruptible())
        stopped = False
        try:
            spent = run.go(run.episode(settings, past))
        except KeyboardInterrupt:
            if report.tally.state is None:
                raise
            stopped, spent = True, run.speculation()
        summary = report.summary(
            lanes.now_ns() / 1e9,
            stopped=stopped,
            speculation=spent,
            lanes={role: virtual.busy_ns[role] / 1e9 for role in ROLES},
            latencies=latencies,
            unexpected=None if stopped else scenario.expect.differences(report.tally),
        )
        report.end(lanes.now_ns(), summary)
    if stopped and run.journal is not None and not run.journal.failure:
        _warn(f"stopped. Go on with --journal {arguments.journal} --resume.")
    return 1 if summary["outcome"] == "stopped" else 0
