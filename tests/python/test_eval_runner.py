"""The evaluation as a whole: cached, interrupted, in several processes, with what fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eval_film import MemoryFilm, episode
from eval_runs import damaged, many

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.cache import Cache, key_of
from compass_edge.eval.knowledge import Knowledge
from compass_edge.eval.method import Lazy, LoopMethod, PrmMethod
from compass_edge.eval.oracle import OraclePrm, oracles
from compass_edge.eval.result import Result
from compass_edge.eval.runner import Evaluated, Evaluation
from compass_edge.loop.settings import Settings

EPISODES = many(4)


def prm() -> OraclePrm:
    return OraclePrm(Knowledge(EPISODES), bias=0.05)


def methods() -> list[Any]:
    make = partial(damaged, EPISODES, prm={"early": 0.5}, verifier={"beta": 0.3, "gamma": 0.3})
    return [LoopMethod(make), PrmMethod(prm)]


def timeless(result: Result) -> Any:
    """All of it but the seconds, which no two runs share."""
    trace = result.trace
    return (
        result.episode,
        result.method,
        result.values.tolist(),
        None if trace is None else trace.position.tolist(),
        None if trace is None else trace.local.tolist(),
        None if trace is None else replace(trace, position=np.zeros(0), local=np.zeros(0), seconds={}).__repr__(),
    )


def same(a: Evaluated, b: Evaluated) -> bool:
    return [timeless(one) for one in a.results] == [timeless(one) for one in b.results]


@dataclass
class Counting:
    """A method that counts its runs, and fails where it is told to."""

    fails: Callable[[Episode], BaseException | None] = lambda one: None
    identities: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    name: str = "counting"

    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name, **self.identities}

    def run(self, one: Episode) -> tuple[Result, ...]:
        self.ran.append(one.id)
        error = self.fails(one)
        if error is not None:
            raise error
        return (Result(one.id, self.name, one.progress()),)


def test_results_are_in_the_order_of_methods_and_episodes() -> None:
    told: list[tuple[int, int, str]] = []
    found = Evaluation(methods(), EPISODES, on_progress=lambda *progress: told.append(progress)).run()
    curves = ["without context", "oracle context", "self-chained"]
    expected = [(one.id, "compass") for one in EPISODES]
    expected += [(one.id, f"{prm().name}, {curve}") for one in EPISODES for curve in curves]
    assert [(result.episode, result.method) for result in found.results] == expected
    assert found.failures == ()
    assert [(done, total) for done, total, _ in told] == [(done, 8) for done in range(9)]
    assert told[1][2] == "compass: T/000"


def test_processes_change_nothing(tmp_path: Path) -> None:
    """Two of them, then none but the cache, then the other order."""
    alone = Evaluation(methods(), EPISODES).run()
    both = Evaluation(methods(), EPISODES, cache=Cache(tmp_path), workers=2).run()
    assert same(alone, both)
    assert both.cached == 0
    again = Evaluation(methods(), EPISODES, cache=Cache(tmp_path)).run()
    assert same(alone, again)
    assert again.cached == 8
    assert again.results[0].trace is not None
    assert both.results[0].trace is not None
    assert again.results[0].trace.seconds == both.results[0].trace.seconds, "kept as they were measured"
    back = Evaluation(methods()[::-1], EPISODES[::-1], cache=Cache(tmp_path)).run()
    assert back.cached == 8
    assert sorted(map(timeless, back.results), key=str) == sorted(map(timeless, alone.results), key=str)


def test_an_interrupted_evaluation_goes_on_where_it_was(tmp_path: Path) -> None:
    def interrupt(one: Episode) -> BaseException | None:
        return KeyboardInterrupt() if one.id == "T/002" else None

    first, second = Counting(interrupt), Counting()
    with pytest.raises(KeyboardInterrupt):
        Evaluation([first], EPISODES, cache=Cache(tmp_path)).run()
    assert first.ran == ["T/000", "T/001", "T/002"]
    found = Evaluation([second], EPISODES, cache=Cache(tmp_path)).run()
    assert second.ran == ["T/002", "T/003"]
    assert found.cached == 2
    assert len(found.results) == 4


def test_processes_end_when_they_are_interrupted(tmp_path: Path) -> None:
    """Whoever watches is interrupted after the first result: it is kept, and no process is left."""

    def interrupt(done: int, _total: int, _what: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Evaluation(methods()[:1], EPISODES, cache=Cache(tmp_path), workers=2, on_progress=interrupt).run()
    found = Evaluation(methods()[:1], EPISODES, cache=Cache(tmp_path)).run()
    assert found.cached >= 1
    assert same(found, Evaluation(methods()[:1], EPISODES).run())


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other", "flipped"])
def test_a_broken_file_is_made_again(tmp_path: Path, damage: str) -> None:
    warned: list[str] = []
    cache = Cache(tmp_path, warned.append)
    Evaluation([Counting()], EPISODES, cache=cache).run()
    paths = [cache.path(key_of(Counting().identity(), one)) for one in EPISODES]
    assert sorted(paths) == sorted(tmp_path.iterdir())
    whole = paths[1].read_bytes()
    middle = len(whole) // 3
    broken = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "text": b"not a result",
        "other": paths[2].read_bytes(),
        "flipped": whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :],
    }[damage]
    paths[1].write_bytes(broken)
    again = Counting()
    found = Evaluation([again], EPISODES, cache=cache).run()
    assert again.ran == ["T/001"]
    assert len(warned) == 1
    assert "is made again" in warned[0]
    assert same(found, Evaluation([Counting()], EPISODES).run())
    assert paths[1].read_bytes() != broken


def test_a_cache_that_cannot_be_written_costs_no_result(tmp_path: Path) -> None:
    warned: list[str] = []
    cache = Cache(tmp_path / "cache", warned.append)
    (tmp_path / "cache").rmdir()
    found = Evaluation([Counting()], EPISODES, cache=cache).run()
    assert len(found.results) == 4
    assert len(warned) == 4
    assert "could not be kept" in warned[0]


def test_what_an_ended_process_left_is_cleared_away_later(tmp_path: Path) -> None:
    left, writing = tmp_path / "a.1.part", tmp_path / "b.2.part"
    for part in (left, writing):
        part.write_bytes(b"half of a resu")
    os.utime(left, (0, 0))
    Cache(tmp_path)
    assert list(tmp_path.iterdir()) == [writing], "somebody may be at work on the other"
    found = Evaluation([Counting()], EPISODES, cache=Cache(tmp_path)).run()
    assert len(found.results) == 4


def test_one_episode_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    def fail(one: Episode) -> BaseException | None:
        return ValueError("no such lamp") if one.id == "T/001" else None

    found = Evaluation([Counting(), Counting(fail, name="frail")], EPISODES, cache=Cache(tmp_path)).run()
    assert len(found.results) == 7
    (failed,) = found.failures
    assert (failed.method, failed.episode, failed.reason) == ("frail", "T/001", "ValueError: no such lamp")
    mended = Evaluation([Counting(name="frail")], EPISODES, cache=Cache(tmp_path)).run()
    assert mended.cached == 3, "a failure is not kept"


def test_what_cannot_be_sent_runs_here() -> None:
    stays = Counting(fails=lambda one: None)  # a lambda cannot be pickled
    found = Evaluation([stays, *methods()[1:]], EPISODES[:2], workers=2).run()
    assert stays.ran == ["T/000", "T/001"]
    assert len(found.results) == 2 + 6


@dataclass(frozen=True)
class Dies:
    """Takes its process with it, unless that is the one that began."""

    home: int
    name: str = "dies"

    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def run(self, one: Episode) -> tuple[Result, ...]:
        if os.getpid() != self.home:
            os._exit(3)
        return (Result(one.id, self.name, one.progress()),)


def test_a_process_that_dies_costs_time_alone() -> None:
    warned: list[str] = []
    found = Evaluation([Dies(os.getpid())], EPISODES, workers=2, warn=warned.append).run()
    assert len(found.results) == 4
    assert len(warned) == 1
    assert "the rest is done in this one" in warned[0]


def test_a_key_knows_all_that_a_result_depends_on() -> None:
    one = episode([10, 20], id="a")
    others = [
        episode([10, 21], id="a", frames=21),
        episode([10, 20], id="a", frames=22),
        episode([10, 20], id="b", film=MemoryFilm("film of a", 21), instruction="Do all of a."),
        replace(one, instruction="Do it."),
        replace(one, film=MemoryFilm("another", 21)),
        replace(one, steps=None),
        replace(one, steps=(replace(one.truth[0], tau="otherwise"), one.truth[1])),
        replace(one, tracks={"path": [0.0] * 21}),
        replace(one, fps=31.0),
    ]
    keys = {key_of({"m": 1}, other) for other in others}
    assert len(keys) == len(others)
    assert key_of({"m": 1}, one) not in keys
    assert key_of({"m": 1}, one) == key_of({"m": 1}, replace(one, tracks={"held": [1]}))
    assert key_of({"m": 1}, one) != key_of({"m": 2}, one)


def test_an_identity_knows_all_that_a_method_depends_on() -> None:
    make = partial(oracles, EPISODES)
    loops = [
        LoopMethod(make),
        LoopMethod(make, Settings()),
        LoopMethod(make, Settings(every=11)),
        LoopMethod(make, between="held"),
        LoopMethod(make, tau="nowhere"),
        LoopMethod(make, name="mine"),
        LoopMethod(partial(damaged, EPISODES, verifier={"beta": 0.1})),
        PrmMethod(prm),
        PrmMethod(prm, context=False),
        PrmMethod(prm, Settings(every=4)),
        PrmMethod(partial(OraclePrm, Knowledge(EPISODES))),
    ]
    keys = {key_of(method.identity(), EPISODES[0]) for method in loops}
    assert len(keys) == len(loops)
    assert LoopMethod(make, executor="pool").identity() == LoopMethod(make).identity()


def test_models_are_made_once_and_only_when_needed(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return oracles(EPISODES)

    names = oracles(EPISODES).names()
    Evaluation([LoopMethod(make, names=names)], EPISODES, cache=Cache(tmp_path)).run()  # type: ignore[arg-type]
    assert len(made) == 1
    Evaluation([LoopMethod(make, names=names)], EPISODES, cache=Cache(tmp_path)).run()  # type: ignore[arg-type]
    assert len(made) == 1, "all was known"
    lazy = Lazy(dict)
    assert lazy() is lazy()


def test_ids_are_unique() -> None:
    with pytest.raises(UsageError, match="an id of its own"):
        Evaluation([], [EPISODES[0], EPISODES[0]])
