"""What V's replies mean."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_edge.roles import verifier
from compass_edge.roles.reply import InvalidReply
from compass_edge.roles.verifier import Verdict

GOOD = {
    "start": " one ",
    "during": "two",
    "candidate": " three\n",
    "change": "four",
    "count_start": None,
    "count_candidate": None,
    "verdict": "done",
}


def read(**change: Any) -> Verdict:
    return verifier.read(json.dumps(GOOD | change))


def refused(trouble: str, *words: str, **change: Any) -> None:
    with pytest.raises(InvalidReply) as caught:
        read(**change)
    assert caught.value.trouble == trouble
    for word in words:
        assert word in caught.value.detail


def test_done_is_accepted() -> None:
    assert read() == Verdict(True, "one", "two", "three", "four", "done")


@pytest.mark.parametrize("verdict", ["not_done", "already_done", "uncertain"])
def test_everything_else_is_a_rejection(verdict: str) -> None:
    assert read(verdict=verdict) == Verdict(False, "one", "two", "three", "four", verdict)


@pytest.mark.parametrize("name", ["count_start", "count_candidate"])
def test_counts_come_together(name: str) -> None:
    refused("meaning", "Both counts", f'"{name}" came without', **{name: 1})
    refused("meaning", "Both counts", **{name: 0, "verdict": "not_done"})


@pytest.mark.parametrize("count", [0, 3])
def test_equal_counts_contradict_done(count: int) -> None:
    refused("meaning", "contradicts", str(count), count_start=count, count_candidate=count)
    assert not read(count_start=count, count_candidate=count, verdict="not_done").accepted


@pytest.mark.parametrize(("before", "after"), [(0, 1), (2, 1), (0, 99)])
def test_different_counts_do_not(before: int, after: int) -> None:
    assert read(count_start=before, count_candidate=after).accepted


@pytest.mark.parametrize("count", [-1, 100, 1.5, "1", True])
def test_counts_are_bounded(count: object) -> None:
    refused("schema", "count_start", count_start=count, count_candidate=1)


def test_done_needs_a_description_of_the_candidate() -> None:
    refused("meaning", '"candidate"', candidate=" ")
    assert not read(candidate=" ", verdict="uncertain").accepted


@pytest.mark.parametrize("change", [{"verdict": "maybe"}, {"verdict": None}, {"start": "x" * 481}, {"extra": 1}])
def test_the_schema_is_kept(change: dict[str, Any]) -> None:
    refused("schema", **change)


@pytest.mark.parametrize("candidate", [" three\n", "", "  ", "x" * 480, "x" * 481, 3, None])
def test_a_peek_agrees_with_the_reading(candidate: object) -> None:
    try:
        expected = read(candidate=candidate).candidate
    except InvalidReply:
        expected = None
    assert verifier.peek({"candidate": candidate}) == expected
    assert verifier.peek({"start": candidate}) is None


@given(
    st.text(alphabet=st.characters())
    | st.fixed_dictionaries({name: st.none() | st.integers() | st.floats() | st.text() for name in GOOD}).map(
        json.dumps
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InvalidReply):
        verifier.read(text)
