"""Runs of the loop as results: the whole chain with oracles, and what a curve is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from chaos import chaos_models, chaos_world
from eval_runs import EXACT, MemoryFilm, damaged, episode, many, runs

from compass_edge.data.episode import Episode, StepTruth
from compass_edge.data.film import Picture
from compass_edge.errors import UsageError
from compass_edge.eval.knowledge import Knowledge
from compass_edge.eval.loop_run import run_loop
from compass_edge.eval.metrics import measure
from compass_edge.eval.oracle import OraclePrm, oracles
from compass_edge.eval.result import LoopTrace, Result, Ruling
from compass_edge.eval.theorem import measure_terms
from compass_edge.eval.trace import Reading, curve
from compass_edge.loop.events import Event, Verified
from compass_edge.loop.progress import progress_of
from compass_edge.loop.settings import Settings
from compass_edge.loop.state import State
from compass_edge.models import Clip, Image
from compass_edge.scripted.ticks import ScriptedTicks
from compass_edge.scripted.world import World

SIMULATED = (
    [62, 121, 184, 239, 308, 369],
    [26, 43, 60, 78, 94, 112, 129, 145],
    [64, 135, 224],
    [24, 49, 73, 97, 121, 154],
    [43, 91, 139],
)


def trace_of(result: Result) -> LoopTrace:
    assert result.trace is not None
    return result.trace


@dataclass(frozen=True)
class ChaosFilm:
    world: World

    @property
    def key(self) -> str:
        return self.world.name

    @property
    def frames(self) -> int:
        return (self.world.ticks - 1) * self.world.every + 1

    def pictures(self, every: int = 1, stop: int | None = None) -> Iterator[tuple[int, Picture]]:
        raise NotImplementedError

    def ticks(self, _settings: Settings, _stop: int | None = None) -> ScriptedTicks:
        return ScriptedTicks(self.world)


def chaotic(seed: int) -> Episode:
    film = ChaosFilm(chaos_world(seed))
    steps = 1 + seed % 3
    ends = [1 + (film.frames * (k + 1)) // (steps + 1) for k in range(steps)]
    truth = tuple(StepTruth(f"do {k}", end) for k, end in enumerate(ends))
    return Episode(f"C/{seed:03}", "C", film.world.instruction, film, film.frames, 30.0, truth)


def test_with_oracles_the_loop_is_nearly_exact() -> None:
    """Steps as long as the paper's at 30 Hz; and at 10 Hz those of a simulated arm, down to a button that is pressed."""
    episodes = many(15, length=(90, 180))
    for number, ends in enumerate(SIMULATED):
        episodes.append(episode(ends, ends[-1] + 20, id=f"sim/{number}", fps=10.0))
    for one, result in zip(episodes, runs(episodes, oracles(episodes)), strict=True):
        scores = measure(result, one)
        assert scores.mae < 1
        assert scores.rho > 0.99
        assert scores.matched.all()
        assert not scores.stalled
        assert trace_of(result).outcome == "done"
        assert trace_of(result).plan_matches
        assert result.values[-1] == 100


def test_with_oracles_at_every_frame_it_is_exact_but_for_what_is_not_yet_verified() -> None:
    episodes = many(3)
    models = damaged(episodes, prm={"ceiling": 0.999})
    for one, result in zip(episodes, runs(episodes, models, EXACT), strict=True):
        assert np.array_equal(trace_of(result).position, one.active())
        assert [ruling.frame for ruling in trace_of(result).rulings] == [step.end for step in one.truth]
        assert all(ruling.true for ruling in trace_of(result).rulings), "complete in that very frame"
        ceiling = np.minimum(one.local(), 0.99)
        assert trace_of(result).local == pytest.approx(ceiling, abs=1e-12)


def test_a_value_is_its_position_and_its_local_progress() -> None:
    episodes = many(20)
    models = damaged(episodes, prm={"early": 0.5, "bias": -0.1}, verifier={"beta": 0.5, "gamma": 0.3})
    for one, result in zip(episodes, runs(episodes, models), strict=True):
        trace = trace_of(result)
        assert result.values == pytest.approx(100 * (trace.position - 1 + trace.local) / one.size, abs=1e-9)
        assert ((trace.local >= 0) & (trace.local <= 1)).all()
        assert ((trace.position >= 1) & (trace.position <= one.size + 1)).all()


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_models_do_the_curve_is_live_and_respects_its_bound(seed: int) -> None:
    """Plans that change, gaps, failures, peaks accepted after the fact: held between ticks it is what `progress_of` said."""
    one, told = chaotic(seed), dict[int, float]()

    def listen(event: Event, state: State) -> None:
        mark = getattr(event, "frame", None)
        newest = max([*told, mark.seq if mark is not None else 0])
        told[newest] = progress_of(state).value

    result = run_loop(one, chaos_models(), between="held", subscribers=(listen,))
    expected = [told[max(frame for frame in told if frame <= at)] for at in range(one.frames)]
    assert result.values == pytest.approx(np.array(expected), abs=1e-9)
    linear = run_loop(one, chaos_models())
    assert np.array_equal(trace_of(linear).position, trace_of(result).position)
    for terms in measure_terms([linear], [one]):
        assert terms.holds, [str(breach) for breach in terms.breaches]


@pytest.mark.parametrize("seed", range(0, 30, 5))
def test_executors_give_the_same_curve(seed: int) -> None:
    one = chaotic(seed)
    reference = run_loop(one, chaos_models())
    for executor in ("overlapped", "pool"):
        other = run_loop(one, chaos_models(max_batch=3), executor=executor)  # type: ignore[arg-type]
        assert np.array_equal(other.values, reference.values), executor
        assert trace_of(other).rulings == trace_of(reference).rulings
        assert trace_of(other).plan == trace_of(reference).plan


def test_nothing_of_a_curve_is_hindsight() -> None:
    """A film that is cut off has the same values up to there: none of them knew what followed."""
    whole = many(1)[0]
    models = damaged([whole], prm={"early": 0.7, "bias": 0.1}, verifier={"beta": 0.5, "gamma": 0.3})
    full = run_loop(whole, models, between="held").values
    for stop in range(11, whole.frames, 30):
        cut = run_loop(replace(whole, frames=stop), models, between="held").values
        assert np.array_equal(cut[: stop - 1], full[: stop - 1]), stop


def test_between_ticks_p_loc_is_linear_and_the_position_held() -> None:
    readings = [Reading(0, 0, 0.0, 0), Reading(2, 1, 0.0, 2), Reading(6, 1, 0.8, 2), Reading(8, 2, 0.5, 2)]
    position, local, values = curve(readings, 10, "linear")
    assert position.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 2, 2]
    assert local == pytest.approx([0, 0, 0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.5, 0.5])
    assert values == pytest.approx([0, 0, 0, 10, 20, 30, 40, 40, 75, 75])
    _, held, _ = curve(readings, 10, "held")
    assert held == pytest.approx([0, 0, 0, 0, 0, 0, 0.8, 0.8, 0.5, 0.5])


def test_a_plan_of_another_size_is_another_scale() -> None:
    """The value follows the plan of its moment, and never slides from one scale to the other."""
    _, local, values = curve([Reading(0, 2, 0.0, 2), Reading(4, 2, 0.8, 4)], 6, "linear")
    assert local.tolist() == [0, 0, 0, 0, 0.8, 0.8]
    assert values == pytest.approx([50, 50, 50, 50, 45, 45])


def test_rulings_say_what_was_true() -> None:
    """P is early in every step; V lets half of that through and turns down some true completions."""
    episodes = many(20)
    models = damaged(episodes, prm={"early": 1.0}, verifier={"beta": 0.5, "gamma": 0.4})
    seen: set[tuple[bool, bool]] = set()
    for one, result in zip(episodes, runs(episodes, models), strict=True):
        trace = trace_of(result)
        assert trace.verdicts == len(trace.rulings)
        accepted = [0]
        for ruling in trace.rulings:
            end = one.truth[ruling.step - 1].end
            assert ruling.step == len(accepted)
            assert ruling.true == (accepted[-1] < end <= ruling.frame)
            seen.add((ruling.accepted, ruling.true))
            if ruling.accepted:
                accepted.append(ruling.frame)
    assert seen == {(True, True), (True, False), (False, True), (False, False)}


def test_what_was_there_before_the_step_began_is_not_true() -> None:
    """The second step ends one frame after the first: when the loop begins with it, it is over."""
    one = episode([40, 41, 100], 160)
    trace = trace_of(run_loop(one, oracles([one])))
    second = [ruling for ruling in trace.rulings if ruling.step == 2]
    assert second
    assert not any(ruling.true or ruling.accepted for ruling in second)
    assert measure(run_loop(one, oracles([one])), one).stalled


def test_steps_with_one_sentence_are_told_apart() -> None:
    one = episode([60, 130, 190, 260], 300, sentences=["Press the button."] * 4)
    result = run_loop(one, oracles([one]))
    assert measure(result, one).mae < 1
    assert [ruling.step for ruling in trace_of(result).rulings if ruling.accepted] == [1, 2, 3, 4]
    assert all(ruling.true for ruling in trace_of(result).rulings)


def test_a_film_under_several_instructions() -> None:
    """Extra steps, an early stop and a mismatch of one film; each has the truth of its own instruction."""
    film = MemoryFilm("shared", 301)
    whole = episode([80, 160, 240], 301, id="A/0", film=film, sentences=["one", "two", "three"])
    extra = episode([80, 240], 301, id="A/1", film=film, sentences=["one", "three"], kind="extra_steps")
    early = episode([80, 160, 240], 200, id="A/2", film=film, sentences=["one", "two", "three"], instruction="cut")
    other = episode([], 301, id="A/3", film=film, kind="mismatch")
    episodes = [whole, extra, early, other]
    models = oracles(episodes)
    for one in episodes:
        result = run_loop(one, models)
        assert measure(result, one).mae < 1, one.id
    assert run_loop(extra, models).values[-1] == 100
    assert run_loop(early, models).values[-1] == pytest.approx(100 * (2 + 39 / 80) / 3)
    nothing = run_loop(other, models)
    assert nothing.values.max() == 0
    assert trace_of(nothing).outcome == "ungrounded"
    assert trace_of(nothing).position.max() == 0
    assert trace_of(nothing).plan_matches, "no step was asked for, and none planned"


def test_words_longer_than_o_may_write() -> None:
    long = "Take the cup, which is the one with the blue rim, " * 12
    one = episode([80, 160], 200, sentences=[long + "first.", "second " + long], instruction=long * 5)
    result = run_loop(one, oracles([one]))
    assert measure(result, one).mae < 1
    assert trace_of(result).invalid == {}


def test_a_wrong_plan_does_not_match() -> None:
    episodes = many(12)
    models = damaged(episodes, orienter={"plan_error": 1.0})
    sizes = {len(trace_of(result).plan) - 4 for result in runs(episodes, models)}
    assert sizes == {-1, 1}
    assert not any(trace_of(result).plan_matches for result in runs(episodes, models))


def test_a_plan_that_matched_only_in_the_end_does_not_match() -> None:
    """While it had three steps its values were on another scale, and the bound speaks of one K."""
    one = episode([100, 200], 260)

    class Mended:
        name, max_batch = "mended", 1

        def __init__(self, orienter: Any) -> None:
            self._orienter = orienter

        def ask(self, questions: Any, on_text: Any, cancelled: Any) -> list[str]:
            reply = json.loads(self._orienter.ask(questions, on_text, cancelled)[0])
            if "plan" in reply:
                reply["plan"].append({"outcome": "Wave.", "criterion": "It waved.", "times": 1})
            elif "edits" in reply:
                gone = {"op": "remove", "id": 3, "before": None, "outcome": "", "criterion": "", "times": 1}
                reply["edits"] = [gone]
            return [json.dumps(reply)]

    exact = oracles([one])
    result = run_loop(one, replace(exact, orienter=Mended(exact.orienter)))
    assert len(trace_of(result).plan) == 2
    assert not trace_of(result).plan_matches
    assert measure_terms([result], [one])[0].eta == 2


def test_replies_that_cannot_be_used_are_counted() -> None:
    one = many(1)[0]
    exact = oracles([one])

    @dataclass(frozen=True)
    class Broken:
        prm: Any
        name: str = "broken"
        max_batch: int = 1

        def score(self, clips: list[Clip]) -> list[float]:
            if int(clips[-1].frames[-1].digest.rpartition("/")[2]) % 30 == 0:
                raise RuntimeError("out of memory")
            return list(self.prm.score(clips))

    result = run_loop(one, replace(exact, prm=Broken(exact.prm)))
    assert trace_of(result).invalid["prm"] > 5
    assert trace_of(result).outcome == "done"


def test_a_verdict_that_cannot_be_used_is_a_rejection() -> None:
    one = episode([100], 160)
    exact = oracles([one])

    @dataclass(frozen=True)
    class Mumbles:
        verifier: Any
        name: str = "mumbles"
        max_batch: int = 1

        def ask(self, questions: Any, on_text: Any, cancelled: Any) -> list[str]:
            last = questions[0].parts[-2].digest
            said: list[str] = self.verifier.ask(questions, on_text, cancelled)
            return ["I think so."] if last.endswith("/110") else said

    trace = trace_of(run_loop(one, replace(exact, verifier=Mumbles(exact.verifier))))
    assert trace.rulings == (Ruling(1, 110, False, True), Ruling(1, 150, True, True))
    assert (trace.verdicts, trace.invalid) == (2, {"verifier": 1})


def test_which_step_a_sentence_means() -> None:
    """Presses that end at 10, 20 and 30, of two instructions."""
    film = MemoryFilm("k", 60)
    three = episode([10, 20, 30], 60, id="three", film=film, sentences=["press"] * 3)
    later = episode([40, 50], 60, id="later", film=film, sentences=["press", "wait"])
    knowledge = Knowledge([three])
    meant = {start: knowledge.meant("press", Image(f"k/{start}")) for start in (0, 9, 10, 19, 20, 29, 30, 59)}
    found = {start: one.index for start, one in meant.items() if one is not None}
    assert found == {0: 0, 9: 0, 10: 1, 19: 1, 20: 2, 29: 2, 30: 2, 59: 2}
    assert knowledge.meant("wait", Image("k/0")) is None
    told = knowledge.meant("press", Image("k/0"), position=3)
    assert told is not None
    assert told.index == 2
    both = Knowledge([three, later])
    nearest = {start: both.meant("press", Image(f"k/{start}")) for start in (8, 25, 45)}
    assert {start: one.episode.id for start, one in nearest.items() if one} == {8: "three", 25: "three", 45: "three"}
    waited = both.meant("wait", Image("k/0"))
    assert waited is not None
    assert (both.local(waited, 40), both.local(waited, 45), both.local(waited, 50)) == (0, 0.5, 1)


def test_a_film_that_is_also_known_cut_short_is_known_whole() -> None:
    film = MemoryFilm("k", 101)
    cut, whole = (episode([50, 100], frames, id=str(frames), film=film, instruction="both") for frames in (31, 101))
    prm = OraclePrm(Knowledge([cut, whole]))
    assert prm.score([Clip("both", (Image("k/0"), Image("k/80")))]) == [pytest.approx(0.8)]


def test_calls_and_seconds_are_by_role() -> None:
    one = many(1)[0]
    events: list[Event] = []
    result = run_loop(one, oracles([one]), subscribers=(lambda event, state: events.append(event),))
    calls, seconds = trace_of(result).calls, trace_of(result).seconds
    assert calls["verifier"] == sum(isinstance(event, Verified) for event in events) == trace_of(result).verdicts
    assert calls["orienter"] == one.size + 1, "the plan, each further step, the review"
    assert set(seconds) == set(calls) == {"orienter", "prm", "verifier"}
    assert all(0 < took < 10 for took in seconds.values())


def test_an_executor_that_there_is_none_of() -> None:
    with pytest.raises(UsageError, match="sequential, overlapped, pool"):
        run_loop(many(1)[0], oracles(many(1)), executor="magic")  # type: ignore[arg-type]


def test_an_oracle_knows_only_what_it_was_told() -> None:
    one, other = many(2)
    prm = OraclePrm(damaged([one]).prm.knowledge)  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="must be told of an episode"):
        prm.score([Clip("x", (other.film.ticks(Settings()).after(-1).image,))])  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="not annotated"):
        oracles([replace(one, steps=None)])
