"""Events to write to a journal: one strategy for every kind, and a few by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import strategies as st

from compass_edge.errors import CompassError
from compass_edge.loop import events as e
from compass_edge.loop.journal import Journal
from compass_edge.loop.mark import Mark
from compass_edge.loop.plan import Completion, Plan, Step, Subtask

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)  # surrogates and control characters too
NUMBER = st.integers(0, 2**62)
REAL = st.floats(allow_nan=False)
JSON = st.dictionaries(TEXT, st.recursive(TEXT | REAL | st.booleans() | st.none(), st.lists, max_leaves=4), max_size=3)
MARK = st.builds(Mark, NUMBER, NUMBER)
PLAN = st.builds(Plan, st.lists(st.builds(Step, NUMBER, TEXT, TEXT, st.booleans()), max_size=3).map(tuple), NUMBER)
SUBTASK = st.builds(Subtask, TEXT, TEXT, TEXT, TEXT, st.sampled_from(get_args(Completion)))
OBJECTS = st.lists(st.tuples(TEXT, NUMBER), max_size=3).map(tuple)
STRATEGIES: dict[type[object], st.SearchStrategy[e.Event]] = {
    e.EpisodeStarted: st.builds(e.EpisodeStarted, TEXT, MARK, JSON, st.dictionaries(TEXT, TEXT, max_size=3), TEXT),
    e.Oriented: st.builds(e.Oriented, MARK, st.booleans(), OBJECTS, st.none() | PLAN, st.none() | SUBTASK),
    e.StepBegun: st.builds(e.StepBegun, NUMBER, NUMBER, MARK, SUBTASK, st.booleans()),
    e.FrameScored: st.builds(e.FrameScored, MARK, REAL),
    e.CompletionProposed: st.builds(e.CompletionProposed, MARK, MARK, REAL, st.sampled_from(["high", "peak", "end"])),
    e.Verified: st.builds(e.Verified, MARK, st.booleans(), TEXT, TEXT, TEXT, TEXT, TEXT),
    e.Reviewed: st.builds(e.Reviewed, MARK, PLAN),
    e.ReplyInvalid: st.builds(
        e.ReplyInvalid,
        st.sampled_from(get_args(e.Role)),
        st.sampled_from(get_args(e.Asked)),
        st.sampled_from(get_args(e.Trouble)),
        TEXT,
        MARK,
    ),
    e.Gap: st.builds(e.Gap, MARK, NUMBER, TEXT, st.booleans()),
    e.StreamEnded: st.builds(e.StreamEnded, MARK),
    e.Stalled: st.builds(e.Stalled, NUMBER, NUMBER),
    e.Ended: st.builds(e.Ended, st.sampled_from(get_args(e.Outcome))),
}
EVENTS = st.one_of(*STRATEGIES.values())
FEW: list[e.Event] = [
    e.EpisodeStarted("把杯子放好 ☕\n", Mark(0, 5), {"every": 10}, {"prm": "p"}),
    e.FrameScored(Mark(10, 6), 0.25),
    e.Verified(Mark(20, 7), True, "a", "b", "c", "d", "e"),
    e.FrameScored(Mark(30, 8), 1e-300),
    e.Ended("done"),
]


def write(path: Path, events: list[e.Event]) -> bytes:
    with Journal.create(path, clock=itertools.count(100).__next__) as journal:
        for event in events:
            journal.append(event)
        assert journal.failure == ""
        assert journal.count == len(events)
    return path.read_bytes()


def sentence(caught: pytest.ExceptionInfo[CompassError], path: Path, exit_code: int) -> str:
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    assert text.endswith(".")
    assert caught.value.exit_code == exit_code
    return text
