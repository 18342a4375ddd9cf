"""The candidate rule: each reason by example, then what must hold for every curve."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_edge.errors import UsageError
from compass_edge.loop.candidate import Candidate, CandidateRule, Watch
from compass_edge.loop.mark import Mark

RULE = CandidateRule(high=0.9, hold=2, peak=0.6, drop=0.2, drop_hold=3, peak_memory=8, retry_after=4, retry_growth=1.5)


def mark(tick: int) -> Mark:
    return Mark(seq=10 * tick, captured_ns=333_000_000 * tick)


def run(rule: CandidateRule, scores: Sequence[float], rejecting: bool = False) -> list[Candidate | None]:
    """The rule's answer at each tick; `rejecting` is a V that accepts nothing."""
    watch, answers = Watch(), []
    for tick, score in enumerate(scores):
        watch, candidate = rule.observe(watch, mark(tick), score)
        answers.append(candidate)
        if candidate is not None and rejecting:
            watch = rule.rejected(watch)
    return answers


def proposed_at(answers: Sequence[Candidate | None]) -> list[int]:
    return [tick for tick, candidate in enumerate(answers) if candidate is not None]


def test_a_high_score_that_holds_proposes_the_current_frame() -> None:
    assert run(RULE, [0.2, 0.5, 0.9, 0.95]) == [None, None, None, Candidate(mark(3), 0.95, "high")]


def test_a_high_score_that_does_not_hold_proposes_nothing() -> None:
    assert proposed_at(run(RULE, [0.95, 0.85, 0.95, 0.85, 0.95])) == []


def test_the_peak_is_proposed_once_the_curve_has_stayed_down() -> None:
    answers = run(RULE, [0.3, 0.7, 0.8, 0.5, 0.4, 0.3])
    assert answers[:5] == [None] * 5
    assert answers[5] == Candidate(mark(2), 0.8, "peak")


def test_of_equal_peaks_the_later_one_is_proposed() -> None:
    assert run(RULE, [0.8, 0.8, 0.5, 0.5, 0.5])[-1] == Candidate(mark(1), 0.8, "peak")


def test_of_a_plateau_its_last_frame_is_proposed() -> None:
    """A step is done at the end of it rather than where a little noise was highest."""
    scores = [0.3, 0.82, 0.8, 0.81, 0.7, 0.5, 0.5, 0.5]
    assert run(RULE, scores)[-1] == Candidate(mark(1), 0.82, "peak")
    assert run(replace(RULE, plateau=0.05), scores)[-1] == Candidate(mark(3), 0.81, "peak")
    assert run(replace(RULE, plateau=0.15), scores)[-1] == Candidate(mark(4), 0.7, "peak")


def test_a_drop_that_recovers_starts_again() -> None:
    assert proposed_at(run(RULE, [0.8, 0.5, 0.5, 0.7, 0.5, 0.5, 0.5])) == [6]


def test_low_peaks_and_shallow_drops_are_noise() -> None:
    assert proposed_at(run(RULE, [0.5, 0.1, 0.1, 0.1, 0.59, 0.1, 0.1, 0.1])) == []
    assert proposed_at(run(RULE, [0.8, 0.7, 0.65, 0.7, 0.75, 0.65, 0.7, 0.8])) == []


def test_after_each_rejection_the_quiet_grows() -> None:
    at = proposed_at(run(RULE, [0.95] * 40, rejecting=True))
    quiet = [later - earlier for earlier, later in itertools.pairwise(at)]
    assert quiet == [4, 6, 9, 14]  # 4 * 1.5^n, rounded up


def test_a_rejected_peak_is_not_proposed_again() -> None:
    assert proposed_at(run(RULE, [0.8] + [0.3] * 30, rejecting=True)) == [3]


def test_a_peak_seen_during_the_quiet_is_proposed_after_it() -> None:
    answers = run(RULE, [0.8, 0.3, 0.3, 0.3, 0.7, 0.2, 0.2, 0.2], rejecting=True)
    assert proposed_at(answers) == [3, 7]
    assert answers[7] == Candidate(mark(4), 0.7, "peak")


def test_a_peak_is_forgotten() -> None:
    down_too_late = [0.8] + [0.7] * 6 + [0.3] * 5
    assert proposed_at(run(RULE, down_too_late)) == []
    assert proposed_at(run(replace(RULE, peak_memory=9), down_too_late)) == [9]


def test_a_gap_interrupts_the_hold() -> None:
    watch, _ = RULE.observe(Watch(), mark(0), 0.95)
    watch, candidate = RULE.observe(RULE.interrupted(watch), mark(5), 0.95)
    assert candidate is None
    assert RULE.observe(watch, mark(6), 0.95)[1] == Candidate(mark(6), 0.95, "high")


def test_a_gap_interrupts_the_drop_but_keeps_the_peak() -> None:
    watch = Watch()
    for tick, score in enumerate([0.8, 0.3, 0.3]):
        watch, _ = RULE.observe(watch, mark(tick), score)
    watch, answers = RULE.interrupted(watch), []
    for tick in (7, 8, 9):
        watch, candidate = RULE.observe(watch, mark(tick), 0.3)
        answers.append(candidate)
    assert answers == [None, None, Candidate(mark(0), 0.8, "peak")]


def test_a_gap_does_not_end_the_quiet() -> None:
    assert RULE.interrupted(RULE.rejected(Watch())) == RULE.rejected(Watch())


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"high": 1.5}, "candidate.high must be a score"),
        ({"peak": float("nan")}, "candidate.peak must be a score"),
        ({"drop": 0}, "candidate.drop must be a score"),
        ({"plateau": -0.1}, "candidate.plateau must be at least 0"),
        ({"drop": 0.1, "plateau": 0.1}, r"less than candidate.drop \(0.1\)"),
        ({"hold": 0}, "candidate.hold must be a whole number"),
        ({"drop_hold": 1.5}, "candidate.drop_hold must be a whole number"),
        ({"retry_growth": 0.5}, "candidate.retry_growth must be between"),
        ({"hihg": 0.9}, "There is no setting 'candidate.hihg'"),
    ],
)
def test_bad_settings_get_a_sentence(values: dict[str, float], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        CandidateRule.from_dict(values)


unit = st.sampled_from(
    [n / 20 for n in range(1, 21)]
)  # a coarse grid: equal scores and exact thresholds are the hard cases
rules = st.builds(
    lambda drop, flat, **thresholds: CandidateRule(drop=drop, plateau=flat * drop, **thresholds),
    flat=st.sampled_from([0, 0.5, 0.99]),
    high=unit,
    hold=st.integers(1, 5),
    peak=unit,
    drop=unit,
    drop_hold=st.integers(1, 5),
    peak_memory=st.integers(1, 12),
    retry_after=st.integers(1, 6),
    retry_growth=st.sampled_from([1, 1.5, 4]),
)
curves = st.lists(st.one_of(st.just(0.0), unit), max_size=60)


@given(rule=rules, scores=curves, other=curves, rejecting=st.booleans(), data=st.data())
def test_the_future_changes_nothing(
    rule: CandidateRule, scores: list[float], other: list[float], rejecting: bool, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(scores)))
    assert run(rule, scores[:cut] + other, rejecting)[:cut] == run(rule, scores, rejecting)[:cut]


@given(rule=rules, scores=curves, rejecting=st.booleans())
def test_resuming_from_a_kept_watch_equals_going_on(rule: CandidateRule, scores: list[float], rejecting: bool) -> None:
    """Observing changes nothing but the watch it returns: looking twice, or at something else in between, is harmless."""
    watch, answers = Watch(), []
    for tick, score in enumerate(scores):
        rule.observe(watch, mark(999), 1.0)
        rule.rejected(watch)
        seen, candidate = rule.observe(watch, mark(tick), score)
        assert rule.observe(watch, mark(tick), score) == (seen, candidate)
        answers.append(candidate)
        watch = rule.rejected(seen) if candidate is not None and rejecting else seen
    assert answers == run(rule, scores, rejecting)


@given(rule=rules, scores=curves, rejecting=st.booleans())
def test_a_candidate_is_a_frame_of_the_recent_past(rule: CandidateRule, scores: list[float], rejecting: bool) -> None:
    for tick, candidate in enumerate(run(rule, scores, rejecting)):
        if candidate is not None:
            its_tick = candidate.frame.seq // 10
            assert tick - (rule.peak_memory + rule.drop_hold) <= its_tick <= tick
            assert candidate == Candidate(mark(its_tick), scores[its_tick], candidate.reason)


@given(rule=rules, scores=curves, rejecting=st.booleans())
def test_a_candidate_has_a_score_worth_asking_about(rule: CandidateRule, scores: list[float], rejecting: bool) -> None:
    for tick, candidate in enumerate(run(rule, scores, rejecting)):
        if candidate is not None and candidate.reason == "high":
            assert candidate.frame == mark(tick)
            assert min(scores[tick + 1 - rule.hold : tick + 1]) >= rule.high
        elif candidate is not None:
            assert candidate.score >= rule.peak - rule.plateau
            dropped = candidate.score + rule.plateau - rule.drop
            assert max(scores[tick + 1 - rule.drop_hold : tick + 1]) <= dropped + 1e-9


@given(rule=rules, scores=curves)
def test_no_candidate_during_the_quiet(rule: CandidateRule, scores: list[float]) -> None:
    watch, silent_until = Watch(), 0
    for tick, score in enumerate(scores):
        watch, candidate = rule.observe(watch, mark(tick), score)
        if candidate is None:
            continue
        assert tick >= silent_until
        watch = rule.rejected(watch)
        silent_until = tick + watch.quiet


@given(rule=rules, scores=curves, gaps=st.sets(st.integers(0, 59)))
def test_nothing_is_held_across_a_gap(rule: CandidateRule, scores: list[float], gaps: set[int]) -> None:
    watch, since_gap = Watch(), 0
    for tick, score in enumerate(scores):
        if tick in gaps:
            watch, since_gap = rule.interrupted(watch), 0
        watch, candidate = rule.observe(watch, mark(tick), score)
        since_gap += 1
        if candidate is not None:
            assert since_gap >= (rule.hold if candidate.reason == "high" else rule.drop_hold)
