"""A run of the loop on an episode, as a result that can be measured.

Nothing here depends on how fast a model is. The sequential executor calls the models in this thread and lets no time pass;
the others run them on threads, with deadlines that no model misses. So all three give the same curve, on any machine.

A value is what stood when the frame's tick had been dealt with, and is never changed afterwards. Between two ticks it is
linear, since all methods are sampled and drawn so; `between="held"` is what a robot's program reads, which with a tick every
10 frames is 4.5 frames behind on average.
"""

from __future__ import annotations

from typing import Literal, get_args

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.result import Result
from compass_edge.eval.sampling import settings_at
from compass_edge.eval.stopwatch import Stopwatch
from compass_edge.eval.trace import Between, Tracer
from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode as LoopEpisode
from compass_edge.loop.episode import Subscriber
from compass_edge.loop.lanes import ROLES, Lanes, Limits
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.virtual_lanes import VirtualLanes

Executor = Literal["sequential", "overlapped", "pool"]
LOOP = "compass"  # the method's name, unless it is given another
_PATIENT = Limits(deadline_s=dict.fromkeys(ROLES, 1e6))


def run_loop(
    episode: Episode,
    models: Models,
    settings: Settings | None = None,
    executor: Executor = "sequential",
    *,
    method: str = LOOP,
    between: Between = "linear",
    subscribers: tuple[Subscriber, ...] = (),
) -> Result:
    """Without settings, ticks are a third of a second apart. `subscribers` are told of every event too, such as a journal."""
    if executor not in get_args(Executor):
        raise UsageError(f"The executor must be one of {', '.join(get_args(Executor))}, and {executor!r} came.")
    watch, tracer, rules = Stopwatch(), Tracer(episode), settings or settings_at(episode.fps)
    timed = watch.around(models)
    loop = LoopEpisode.begin(
        episode.instruction,
        episode.film.ticks(rules, episode.frames),
        timed.names(),
        settings=rules,
        subscribers=(*subscribers, tracer),
        source=episode.id,
    )
    if executor == "sequential":
        run_sequential(loop, VirtualLanes(timed, lambda job: 0))
    else:
        with ThreadLanes(timed, _PATIENT) as lanes:
            _run(loop, lanes, timed, executor)
    values, trace = tracer.finished(dict(watch.seconds), dict(watch.calls), between)
    return Result(episode.id, method, values, trace)


def _run(loop: LoopEpisode, lanes: Lanes, models: Models, executor: Executor) -> None:
    if executor == "pool":
        run_pool([loop], lanes, models)
    else:
        Overlapped(loop, lanes, models).run()
