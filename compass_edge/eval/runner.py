"""The evaluation: methods on episodes, on several cores, cached, and the same whatever the order.

What is finished is kept at once, by whoever finished it: an evaluation that was interrupted goes on where it was.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.cache import Cache, Warn, key_of
from compass_edge.eval.method import Method
from compass_edge.eval.result import Result
from compass_edge.workers import workers

# How many are done, of how many, and what was the last.
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Failed:
    method: str
    episode: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    results: tuple[Result, ...]  # by method, then by episode, in the order in which they were given
    failures: tuple[Failed, ...]
    cached: int  # runs that were known already


@dataclass(frozen=True, slots=True)
class _Job:
    place: int
    method: int
    episode: Episode
    key: str


_Outcome = tuple[Result, ...] | str  # results, or why there are none


class Evaluation:
    """`workers` processes; methods or films that cannot be sent to one run in this one."""

    def __init__(
        self,
        methods: Sequence[Method],
        episodes: Sequence[Episode],
        *,
        cache: Cache | None = None,
        workers: int = 1,
        on_progress: OnProgress = lambda done, total, what: None,
        warn: Warn = lambda line: None,
    ) -> None:
        if len({episode.id for episode in episodes}) < len(episodes):
            raise UsageError("Every episode of an evaluation must have an id of its own.")
        self._methods, self._episodes, self._cache, self._workers = methods, episodes, cache, workers
        self._on_progress, self._warn = on_progress, warn

    def run(self) -> Evaluated:
        found: dict[int, _Outcome] = {}
        jobs: list[_Job] = []
        for number, method in enumerate(self._methods):
            identity = method.identity()
            for episode in self._episodes:
                job = _Job(len(found) + len(jobs), number, episode, key_of(identity, episode))
                known = self._cache.load(job.key) if self._cache is not None else None
                if known is None:
                    jobs.append(job)
                else:
                    found[job.place] = known
        cached, total = len(found), len(found) + len(jobs)
        self._on_progress(cached, total, "known already")
        with contextlib.closing(self._outcomes(jobs)) as outcomes:  # Ctrl-C anywhere here ends the processes too
            for job, outcome in outcomes:
                found[job.place] = outcome
                self._on_progress(len(found), total, f"{self._methods[job.method].name}: {job.episode.id}")
        results, failures = list[Result](), list[Failed]()
        for place, outcome in sorted(found.items()):
            if isinstance(outcome, str):
                of, at = divmod(place, len(self._episodes))
                failures.append(Failed(self._methods[of].name, self._episodes[at].id, outcome))
            else:
                results += outcome
        return Evaluated(tuple(results), tuple(failures), cached)

    def _outcomes(self, jobs: Sequence[_Job]) -> Generator[tuple[_Job, _Outcome], None, None]:
        sendable = {
            number for number in {job.method for job in jobs} if self._workers > 1 and _sendable(self._methods[number])
        }
        movable = [job for job in jobs if job.method in sendable and _sendable(job.episode)]
        left = {job.place: job for job in jobs}
        if len(movable) > 1:
            try:
                with contextlib.closing(self._in_processes(movable)) as outcomes:
                    for job, outcome in outcomes:
                        del left[job.place]
                        yield job, outcome
            except BrokenProcessPool as error:
                self._warn(f"A process of the evaluation ended ({error}): the rest is done in this one.")
        for job in left.values():
            yield job, _attempt(self._methods[job.method], job, self._cache)

    def _in_processes(self, jobs: Sequence[_Job]) -> Generator[tuple[_Job, _Outcome], None, None]:
        sent = {job.method: self._methods[job.method] for job in jobs}
        folder = self._cache.folder if self._cache is not None else None
        with workers(self._workers, len(jobs), _begin, sent, folder) as pool:
            futures: dict[Future[_Outcome], _Job] = {pool.submit(_work, job): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()


def _sendable(value: Method | Episode) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # whatever a foreign object raises: it stays here
        return False
    return True


def _attempt(method: Method, job: _Job, cache: Cache | None) -> _Outcome:
    """One episode that cannot be run does not end an evaluation of hundreds."""
    try:
        results = method.run(job.episode)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if cache is not None:
        cache.store(job.key, results)
    return results


@dataclass(slots=True)
class _Worker:
    methods: dict[int, Method]
    cache: Cache | None


_WORKER: list[_Worker] = []


def _begin(methods: dict[int, Method], folder: Path | None) -> None:
    _WORKER.append(_Worker(methods, Cache(folder) if folder is not None else None))


def _work(job: _Job) -> _Outcome:
    worker = _WORKER[-1]
    return _attempt(worker.methods[job.method], job, worker.cache)
