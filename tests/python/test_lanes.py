"""Lanes and circuit breaker."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from compass_edge.loop.breaker import Breaker
from compass_edge.loop.call import Call, Failure, Models
from compass_edge.loop.lanes import Finished, Job, Limits, Streamed
from compass_edge.loop.mark import Mark
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.models import Cancelled, Clip, Image, OnText, Question

SECOND = 10**9


@dataclass
class Talker:
    """Says what it is told to, in two pieces; waits for `gate` before the second if there is one."""

    text: Any = '{"start": "a", "candidate": "b"}'
    gate: threading.Event | None = None
    began: threading.Event = field(default_factory=threading.Event)
    cancelled: bool = False
    name: str = "talker"
    max_batch: int = 4

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Any:
        if isinstance(self.text, Exception):
            raise self.text
        if not isinstance(self.text, str):
            return self.text
        for index in range(len(questions)):
            on_text(index, self.text[:14])
        self.began.set()
        while self.gate is not None and not self.gate.wait(0.001):
            if cancelled():
                self.cancelled = True
                break
        for index in range(len(questions)):
            on_text(index, self.text[14:])
        return [self.text for _ in questions]


@dataclass
class Scorer:
    scores: Any = (0.5,)
    name: str = "scorer"
    max_batch: int = 4

    def score(self, _clips: Sequence[Clip]) -> Any:
        if isinstance(self.scores, Exception):
            raise self.scores
        return self.scores


def models(verifier: Talker | None = None, prm: Scorer | None = None) -> Models:
    return Models(Talker(), prm or Scorer(), verifier or Talker())


def ask(key: str = "k") -> Call:
    return Call("verifier", "verify", Question(("?",), {}), Mark(0, 0), key)


def score(key: str = "p") -> Call:
    return Call("prm", "score", Clip("do it", (Image("i"),)), Mark(0, 0), key)


class TestVirtualLanes:
    def test_a_reply_takes_its_time_and_its_fields_come_before_it(self) -> None:
        lanes = VirtualLanes(models(), lambda job: 10 * SECOND)
        job = Job("verifier", (ask(),))
        lanes.start(job)
        assert lanes.room("verifier") == 0
        (first,) = lanes.wait(None)
        assert isinstance(first, Streamed)
        assert (first.name, first.value) == ("start", "a")
        assert 1 * SECOND < lanes.now_ns() < 10 * SECOND
        signals = [*lanes.wait(None), *lanes.wait(None)]
        assert isinstance(signals[-1], Finished)
        assert lanes.now_ns() == 10 * SECOND == lanes.busy_ns["verifier"]
        assert lanes.room("verifier") == 1

    def test_waiting_no_longer_than_asked(self) -> None:
        lanes = VirtualLanes(models(), lambda job: 10 * SECOND)
        assert lanes.wait(3 * SECOND) == []
        assert lanes.now_ns() == 3 * SECOND
        assert lanes.wait(None) == []  # nothing runs: at once

    def test_what_takes_too_long_is_late_at_its_deadline(self) -> None:
        lanes = VirtualLanes(models(), lambda job: 10**15, Limits(deadline_s={"verifier": 60.0}))
        lanes.start(Job("verifier", (ask(),)))
        (signal,) = lanes.wait(None)
        assert isinstance(signal, Finished)
        assert signal.replies == (Failure("late", "The verifier was to answer within 60 s and did not."),)
        assert lanes.now_ns() == 60 * SECOND

    def test_a_cancelled_job_says_nothing_more_and_frees_its_lane(self) -> None:
        lanes = VirtualLanes(models(), lambda job: 10 * SECOND)
        job = Job("verifier", (ask(),))
        lanes.start(job)
        lanes.wait(2 * SECOND)
        lanes.cancel(job)
        assert lanes.room("verifier") == 1
        assert lanes.wait(20 * SECOND) == []
        assert lanes.busy_ns["verifier"] == 2 * SECOND


class TestAnswers:
    @pytest.mark.parametrize(
        ("scores", "said"),
        [
            (ValueError("no memory"), "ValueError: no memory"),
            ((0.1, 0.2), "asked 1 questions and gave 2 answers"),
            (None, "TypeError"),
            (("high",), "must answer with a number"),
        ],
    )
    def test_whatever_p_does_is_a_reply(self, scores: Any, said: str) -> None:
        lanes = VirtualLanes(models(prm=Scorer(scores)), lambda job: 1)
        lanes.start(Job("prm", (score(),)))
        (signal,) = lanes.wait(None)
        assert isinstance(signal, Finished)
        (reply,) = signal.replies
        assert isinstance(reply, Failure)
        assert said in reply.detail

    def test_text_must_be_text(self) -> None:
        lanes = VirtualLanes(models(verifier=Talker(text=[42])), lambda job: 1)
        lanes.start(Job("verifier", (ask(),)))
        (signal,) = lanes.wait(None)
        assert isinstance(signal, Finished)
        assert signal.replies == (Failure("missing", "The verifier must answer with text."),)


class TestThreadLanes:
    def test_fields_come_while_the_reply_is_being_written(self) -> None:
        gate = threading.Event()
        with ThreadLanes(models(verifier=Talker(gate=gate))) as lanes:
            lanes.start(Job("verifier", (ask(),)))
            signals = lanes.wait(None)
            while not signals:
                signals = lanes.wait(None)
            assert [(s.name, s.value) for s in signals if isinstance(s, Streamed)] == [("start", "a")]
            gate.set()
            while not isinstance(signals[-1], Finished):
                signals += lanes.wait(None)
            assert lanes.room("verifier") == 1

    def test_a_hanging_model_is_late_and_keeps_its_lane_until_it_returns(self) -> None:
        gate, talker = threading.Event(), Talker()
        talker.gate = gate
        limits = Limits(deadline_s={"verifier": 0.02, "prm": 5.0, "orienter": 5.0})
        with ThreadLanes(models(verifier=talker), limits) as lanes:
            lanes.start(Job("verifier", (ask(),)))
            finished: list[Finished] = []
            while not finished:
                finished = [signal for signal in lanes.wait(None) if isinstance(signal, Finished)]
            assert isinstance(finished[0].replies[0], Failure)
            assert finished[0].replies[0].trouble == "late"
            while lanes.room("verifier") == 0:  # told to stop, it does, and what it then says is dropped
                assert not any(isinstance(signal, Finished) for signal in lanes.wait(None))
            assert talker.cancelled

    def test_a_cancelled_job_is_told_so_and_never_heard_of_again(self) -> None:
        talker = Talker(gate=threading.Event())
        with ThreadLanes(models(verifier=talker)) as lanes:
            job = Job("verifier", (ask(),))
            lanes.start(job)
            talker.began.wait(10)
            lanes.cancel(job)
            heard: list[Any] = []
            while lanes.room("verifier") == 0:
                heard += lanes.wait(None)
            assert not any(isinstance(signal, Finished) for signal in heard)
            assert talker.cancelled

    def test_wake_ends_a_wait(self) -> None:
        with ThreadLanes(models(verifier=Talker(gate=threading.Event()))) as lanes:
            lanes.start(Job("verifier", (ask(),)))
            lanes.wake()
            assert not any(isinstance(signal, Finished) for signal in lanes.wait(lanes.now_ns() + 3600 * SECOND))


class TestBreaker:
    def test_opens_after_three_failures_in_a_row_rests_and_tries_once(self) -> None:
        breaker = Breaker(failures=3, rest_ns=5)
        for now in (1, 2):
            breaker.record(True, now)
        assert not breaker.is_open(2)
        breaker.record(True, 3)
        assert breaker.is_open(7)
        assert breaker.tripped
        assert not breaker.is_open(8)  # the one try
        breaker.record(True, 8)
        assert breaker.is_open(12)
        breaker.record(False, 13)
        assert not breaker.is_open(13)
        assert not breaker.tripped

    def test_failures_that_are_not_in_a_row_do_not_count(self) -> None:
        breaker = Breaker(failures=2)
        for failed in (True, False, True, False, True):
            breaker.record(failed, 0)
        assert not breaker.tripped
