"""What O's replies mean: the first plan, edits of it, a review of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_edge.loop.plan import Plan, Step, Subtask
from compass_edge.roles import orienter
from compass_edge.roles.orienter import FirstReply, NextReply
from compass_edge.roles.reply import InvalidReply

MAX = 4
PLAN = Plan((Step(1, "one", "c1", True), Step(2, "two", "c2"), Step(5, "five", "c5")), revision=3, issued=5)
STEP = {"subtask": " Put the cup on the mat. ", "before": "b", "tau": "t", "after": "a", "completion": "brief"}
SUBTASK = Subtask("Put the cup on the mat.", "b", "t", "a", "brief")
NOTHING = {"subtask": "", "before": "", "tau": "", "after": "", "completion": "lasting"}


def entry(outcome: str = "cup on mat", criterion: str = "cup seen on mat", times: int = 1) -> dict[str, Any]:
    return {"outcome": outcome, "criterion": criterion, "times": times}


def edit(op: str, id: int | None = None, before: int | None = None, **change: Any) -> dict[str, Any]:
    return {"op": op, "id": id, "before": before, **entry("new", "seen"), **change}


def first(**change: Any) -> str:
    objects = [{"name": "cup", "count": 2}, {"name": "mat", "count": 0}]
    return json.dumps({"objects": objects, "grounded": True, "plan": [entry(), entry("two", "c2")], **STEP} | change)


def read_first(**change: Any) -> FirstReply:
    return orienter.read_first(first(**change), tau=True, max_steps=MAX)


def read_next(*edits: dict[str, Any], plan: Plan = PLAN, **change: Any) -> NextReply:
    return orienter.read_next(json.dumps({"edits": edits, **STEP} | change), plan, tau=True, max_steps=MAX)


def read_review(*omitted: dict[str, Any], plan: Plan = PLAN) -> Plan:
    return orienter.read_review(json.dumps({"omitted": omitted}), plan, max_steps=MAX)


def refused(read: Callable[[], object], *words: str, trouble: str = "meaning") -> None:
    with pytest.raises(InvalidReply) as caught:
        read()
    assert caught.value.trouble == trouble
    assert caught.value.detail.endswith(".")
    for word in words:
        assert word in caught.value.detail


class TestFirst:
    def test_the_plan_and_its_first_step_are_read(self) -> None:
        plan = Plan((Step(1, "cup on mat", "cup seen on mat"), Step(2, "two", "c2")), revision=1, issued=2)
        assert read_first() == FirstReply(True, (("cup", 2), ("mat", 0)), plan, SUBTASK)

    def test_without_grounding_there_is_no_plan(self) -> None:
        seen = [{"name": "bowl", "count": 1}]
        read = read_first(grounded=False, plan=[], objects=seen, **NOTHING)
        assert read == FirstReply(False, (("bowl", 1),), None, None)

    @pytest.mark.parametrize("name", ["plan", "subtask", "before", "tau", "after"])
    def test_without_grounding_everything_else_is_empty(self, name: str) -> None:
        filled = [entry()] if name == "plan" else "words"
        refused(
            lambda: read_first(**{"grounded": False, "plan": [], **NOTHING, name: filled}),
            f"false, {name} must be empty",
        )

    def test_grounding_needs_an_object(self) -> None:
        refused(lambda: read_first(objects=[{"name": "cup", "count": 0}]), "count of at least 1")
        refused(lambda: read_first(objects=[]), "count of at least 1")

    def test_grounding_needs_a_plan(self) -> None:
        refused(lambda: read_first(plan=[]), "at least one step")

    def test_an_object_is_listed_once(self) -> None:
        refused(
            lambda: read_first(objects=[{"name": "cup", "count": 1}, {"name": " Cup", "count": 1}]), "each kind once"
        )

    def test_an_object_has_a_name(self) -> None:
        refused(lambda: read_first(objects=[{"name": " ", "count": 1}]), '"name"')

    @pytest.mark.parametrize("count", [-1, 100, None, "1"])
    def test_counts_are_bounded(self, count: object) -> None:
        refused(lambda: read_first(objects=[{"name": "cup", "count": count}]), "count", trouble="schema")

    def test_one_step_per_occurrence(self) -> None:
        refused(lambda: read_first(plan=[entry("knock", times=3)]), "one step per occurrence", "split", '"knock"', "3")

    @pytest.mark.parametrize("name", ["outcome", "criterion"])
    def test_a_step_says_something(self, name: str) -> None:
        refused(lambda: read_first(plan=[entry(**{name: " \n"})]), f'"{name}"')

    @pytest.mark.parametrize("sentence", ["", "  \t"])
    def test_the_sentence_says_something(self, sentence: str) -> None:
        refused(lambda: read_first(subtask=sentence), '"subtask"')

    @pytest.mark.parametrize("tau", ["", " \n"])
    def test_the_expected_transition_says_something(self, tau: str) -> None:
        refused(lambda: read_first(tau=tau), '"tau" must say something')

    def test_what_it_looks_like_before_and_after_may_be_left_open(self) -> None:
        assert read_first(before="", after=" ").subtask == Subtask("Put the cup on the mat.", "", "t", "", "brief")

    def test_a_plan_is_bounded(self) -> None:
        assert read_first(plan=[entry()] * MAX).plan is not None
        refused(lambda: read_first(plan=[entry()] * (MAX + 1)), f"at most {MAX}", trouble="schema")

    def test_fields_are_exactly_those_of_the_schema(self) -> None:
        refused(lambda: read_first(extra=1), "extra", trouble="schema")
        refused(lambda: read_first(completion="soon"), "completion", trouble="schema")
        refused(lambda: orienter.read_first(first(), tau=False, max_steps=MAX), "tau", trouble="schema")

    def test_without_tau_the_subtask_has_none(self) -> None:
        values = json.loads(first())
        del values["tau"]
        read = orienter.read_first(json.dumps(values), tau=False, max_steps=MAX)
        assert read.subtask == Subtask("Put the cup on the mat.", "b", "", "a", "brief")
        refused(lambda: orienter.read_first(json.dumps(values), tau=True, max_steps=MAX), "tau", trouble="schema")


class TestNext:
    def test_without_edits_the_plan_is_the_very_same(self) -> None:
        read = read_next()
        assert read.plan is PLAN
        assert read.subtask == SUBTASK

    @pytest.mark.parametrize(
        ("edits", "steps"),
        [
            ([edit("add")], "1 2 5 6:new"),
            ([edit("add", before=2)], "1 6:new 2 5"),
            ([edit("add", before=5)], "1 2 6:new 5"),
            ([edit("remove", 5), edit("add")], "1 2 6:new"),
            ([edit("add"), edit("remove", 6), edit("add")], "1 2 5 7:new"),
            ([edit("correct", 2)], "1 2:new 5"),
            ([edit("remove", 2)], "1 5"),
            ([edit("move", 5, 2)], "1 5 2"),
            ([edit("move", 2)], "1 5 2"),
            ([edit("remove", 2), edit("remove", 5), edit("add")], "1 6:new"),
        ],
    )
    def test_edits(self, edits: list[dict[str, Any]], steps: str) -> None:
        plan = read_next(*edits).plan
        written = [f"{step.id}:{step.outcome}" if step.outcome == "new" else str(step.id) for step in plan.steps]
        assert " ".join(written) == steps
        assert plan.revision == PLAN.revision + 1
        assert plan.steps[0] is PLAN.steps[0]

    @pytest.mark.parametrize(
        "edits",
        [
            [edit("move", 2, 5)],
            [edit("move", 5)],
            [edit("correct", 2, outcome=" two", criterion="c2 ")],
            [edit("move", 5, 2), edit("move", 5)],
        ],
    )
    def test_edits_that_change_nothing_leave_the_very_same_plan(self, edits: list[dict[str, Any]]) -> None:
        assert read_next(*edits).plan is PLAN

    def test_the_id_of_a_removed_step_is_not_used_again(self) -> None:
        shorter = read_next(edit("remove", 5)).plan
        assert [step.id for step in read_next(edit("add"), plan=shorter).plan.steps] == [1, 2, 6]

    @pytest.mark.parametrize("op", ["correct", "remove", "move"])
    @pytest.mark.parametrize("step_id", [1, 3, 9, None])
    def test_only_open_steps_can_be_named(self, op: str, step_id: int | None) -> None:
        refused(lambda: read_next(edit(op, step_id)), '"id"', "there are: 2, 5", json.dumps(step_id))

    @pytest.mark.parametrize(("op", "step_id"), [("add", None), ("move", 5)])
    @pytest.mark.parametrize("before", [1, 3, 9])
    def test_a_step_goes_before_an_open_one(self, op: str, step_id: int | None, before: int) -> None:
        refused(lambda: read_next(edit(op, step_id, before)), '"before"', str(before))

    def test_a_removed_step_can_no_longer_be_named(self) -> None:
        refused(lambda: read_next(edit("remove", 5), edit("correct", 5)), "there are: 2)")

    def test_an_added_step_does_not_choose_its_id(self) -> None:
        refused(lambda: read_next(edit("add", 6)), "must be null", "6")

    @pytest.mark.parametrize("op", ["correct", "remove"])
    def test_only_add_and_move_place_a_step(self, op: str) -> None:
        refused(lambda: read_next(edit(op, 2, 5)), '"before" must be null', op)

    def test_a_step_is_not_moved_before_itself(self) -> None:
        refused(lambda: read_next(edit("move", 2, 2)), "before itself")

    @pytest.mark.parametrize(("op", "step_id"), [("add", None), ("correct", 2)])
    def test_new_words_are_checked(self, op: str, step_id: int | None) -> None:
        refused(lambda: read_next(edit(op, step_id, times=2)), "one step per occurrence")
        refused(lambda: read_next(edit(op, step_id, outcome=" ")), '"outcome"')
        refused(lambda: read_next(edit(op, step_id, criterion="")), '"criterion"')

    @pytest.mark.parametrize("op", ["remove", "move"])
    def test_words_do_not_matter_where_none_are_used(self, op: str) -> None:
        assert read_next(edit(op, 2, outcome="", criterion="", times=2)).plan is not PLAN

    def test_a_task_is_never_finished_by_editing_its_plan(self) -> None:
        refused(lambda: read_next(edit("remove", 2), edit("remove", 5)), "never finished by editing")

    def test_a_plan_is_bounded(self) -> None:
        assert read_next(edit("add")).plan.size == MAX
        refused(lambda: read_next(edit("add"), edit("add")), f"at most {MAX}", "5")

    def test_the_sentence_says_something(self) -> None:
        refused(lambda: read_next(subtask=" "), '"subtask"')

    def test_the_expected_transition_says_something(self) -> None:
        refused(lambda: read_next(tau=" "), '"tau" must say something')


class TestReview:
    def test_nothing_omitted_is_the_very_same_plan(self) -> None:
        assert read_review() is PLAN

    def test_what_was_omitted_comes_at_the_end(self) -> None:
        plan = read_review(entry())
        assert plan == Plan((*PLAN.steps, Step(6, "cup on mat", "cup seen on mat")), revision=4, issued=6)

    def test_it_is_checked_as_any_step_is(self) -> None:
        refused(lambda: read_review(entry(times=2)), "one step per occurrence")
        refused(lambda: read_review(entry(outcome=" ")), '"outcome"')
        refused(lambda: read_review(entry(criterion=" ")), '"criterion"')
        refused(lambda: read_review(entry(), entry()), f"at most {MAX}")


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["edits", "plan", "omitted", "grounded", *STEP]), inner)
    ),
)


@given(st.text(alphabet=st.characters()) | ANY_JSON.map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (
        lambda: orienter.read_first(text, tau=True, max_steps=MAX),
        lambda: orienter.read_next(text, PLAN, tau=False, max_steps=MAX),
        lambda: orienter.read_review(text, PLAN, max_steps=MAX),
    ):
        with suppress(InvalidReply):
            read()
