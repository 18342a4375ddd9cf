"""A look at O's reply while it is still being written: at every prefix it says what the whole will, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_roles_orienter import MAX, NOTHING, PLAN, STEP, entry, first

from compass_edge.loop.plan import Plan
from compass_edge.roles import orienter
from compass_edge.roles.fields import Fields
from compass_edge.roles.reply import InvalidReply

Peeked = tuple[Plan, str] | None
IDS = st.none() | st.integers(1, 7)
WORDS = st.sampled_from(["", " ", "two", "x y", 'a "b"', "ü\\n"])
SENTENCES = st.sampled_from(["Do it.", " Do it.\n", "", "x" * 241, 'Say "hi, {you}".'])
STEPS: dict[str, st.SearchStrategy[Any]] = {
    "outcome": WORDS,
    "criterion": WORDS,
    "times": st.sampled_from([1, 1, 1, 1.0, 2]),
}
EDITS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "correct", "remove", "move", "swap"]), "id": IDS, "before": IDS, **STEPS}
    ),
    max_size=3,
)
PLANS = st.lists(st.just(entry()) | st.fixed_dictionaries(STEPS), max_size=MAX + 1)
OBJECTS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["cup", " Cup", "mat", ""]), "count": st.integers(0, 2)}), max_size=2
)


def check_every_prefix(
    values: dict[str, Any], head: set[str], peek: Callable[[dict[str, Any]], Peeked], expected: Peeked
) -> None:
    """Nothing before the last field of the head is there; from then on what the reading of the whole gives."""
    text = json.dumps(values)
    fields, seen = Fields(), dict[str, Any]()
    for at, char in enumerate(text, start=1):
        seen.update(fields.feed(char))
        assert peek(seen) == (expected if head <= seen.keys() else None), text[:at]
    assert seen == values


class TestNext:
    @given(EDITS, SENTENCES, st.booleans())
    def test_it_agrees_with_the_reading_at_every_prefix(
        self, edits: list[dict[str, Any]], sentence: str, tau: bool
    ) -> None:
        values = {"edits": edits, **STEP, "subtask": sentence}
        if not tau:
            del values["tau"]
        expected = None
        try:
            read = orienter.read_next(json.dumps(values), PLAN, tau=tau, max_steps=MAX)
            expected = (read.plan, read.subtask.sentence)
        except InvalidReply:
            pass
        check_every_prefix(
            values, {"edits", "subtask"}, lambda seen: orienter.peek_next(seen, PLAN, max_steps=MAX), expected
        )

    def test_it_keeps_the_very_same_plan(self) -> None:
        peeked = orienter.peek_next({"edits": [], "subtask": "Do it."}, PLAN, max_steps=MAX)
        assert peeked is not None
        assert peeked[0] is PLAN

    @pytest.mark.parametrize("fields", [{}, {"edits": []}, {"subtask": "x"}, {"edits": 1, "subtask": "x"}])
    def test_it_needs_both_fields(self, fields: dict[str, Any]) -> None:
        assert orienter.peek_next(fields, PLAN, max_steps=MAX) is None


class TestFirst:
    @given(OBJECTS, st.sampled_from([True, True, False]), PLANS, SENTENCES, st.booleans())
    def test_it_agrees_with_the_reading_at_every_prefix(
        self,
        objects: list[dict[str, Any]],
        grounded: bool,
        plan: list[dict[str, Any]],
        sentence: str,
        tau: bool,
    ) -> None:
        values = {"objects": objects, "grounded": grounded, "plan": plan, **STEP, "subtask": sentence}
        if not tau:
            del values["tau"]
        expected = None
        try:
            read = orienter.read_first(json.dumps(values), tau=tau, max_steps=MAX)
            if read.plan is not None and read.subtask is not None:
                expected = (read.plan, read.subtask.sentence)
        except InvalidReply:
            pass
        check_every_prefix(
            values,
            {"objects", "grounded", "plan", "subtask"},
            lambda seen: orienter.peek_first(seen, max_steps=MAX),
            expected,
        )

    def test_it_gives_the_plan_and_the_sentence_before_the_rest_is_written(self) -> None:
        values = {name: json.loads(first())[name] for name in ("objects", "grounded", "plan", "subtask")}
        read = orienter.read_first(first(), tau=True, max_steps=MAX)
        assert orienter.peek_first(values, max_steps=MAX) == (read.plan, "Put the cup on the mat.")

    def test_without_grounding_there_is_nothing_to_see(self) -> None:
        text = first(grounded=False, plan=[], **NOTHING)
        assert orienter.read_first(text, tau=True, max_steps=MAX).grounded is False
        assert orienter.peek_first(json.loads(text), max_steps=MAX) is None

    @pytest.mark.parametrize(
        "wrong",
        [
            {"objects": []},
            {"objects": [{"name": "cup", "count": 0}]},
            {"objects": [{"name": "cup", "count": 1}, {"name": "Cup ", "count": 1}]},
            {"objects": 1},
            {"grounded": 1},
            {"plan": []},
            {"plan": [entry(times=2)]},
            {"plan": [entry(" ")]},
            {"plan": [entry()] * (MAX + 1)},
            {"subtask": " "},
            {"subtask": None},
        ],
    )
    def test_what_will_be_refused_is_not_seen(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidReply):
            orienter.read_first(first(**wrong), tau=True, max_steps=MAX)
        assert orienter.peek_first(json.loads(first(**wrong)), max_steps=MAX) is None

    @pytest.mark.parametrize("name", ["objects", "grounded", "plan", "subtask"])
    def test_it_needs_all_four_fields(self, name: str) -> None:
        values = json.loads(first())
        del values[name]
        assert orienter.peek_first(values, max_steps=MAX) is None
