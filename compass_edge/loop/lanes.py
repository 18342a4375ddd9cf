"""Lanes: one for each model. Executors are written against them; they run on threads or in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from compass_edge.loop.call import Call, Failure, Models, Reply
from compass_edge.loop.events import Role
from compass_edge.models import Cancelled, Clip, OnText, Question

ROLES: tuple[Role, ...] = ("orienter", "prm", "verifier")


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Calls of one role that go to its model together."""

    role: Role
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Streamed:
    """A field of a reply that is still being written."""

    job: Job
    call: Call
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Finished:
    job: Job
    replies: tuple[Reply, ...]  # one a call


Signal: TypeAlias = Streamed | Finished


@dataclass(frozen=True, slots=True)
class Limits:
    """How many jobs a model takes at once, and how long one may take. They change when events come, not which."""

    at_once: Mapping[Role, int] = field(default_factory=lambda: {"orienter": 1, "prm": 1, "verifier": 1})
    deadline_s: Mapping[Role, float] = field(default_factory=lambda: {"orienter": 120.0, "prm": 20.0, "verifier": 60.0})


class Lanes(Protocol):
    """Used by one thread, the executor's."""

    def now_ns(self) -> int: ...

    def room(self, role: Role) -> int:
        """Jobs that can be started now."""

    def stuck(self, role: Role) -> bool:
        """Any thread: a call is past its deadline, and its model still has not returned."""

    def start(self, job: Job) -> None:
        """There must be room."""

    def cancel(self, job: Job) -> None:
        """Nobody waits for it any more. Its lane is free as soon as the model has noticed; no signal of it follows."""

    def wait(self, until_ns: int | None) -> list[Signal]:
        """Waits for a signal, no longer than until then; without a time and a running job it returns at once."""


def late(role: Role, seconds: float) -> Failure:
    return Failure("late", f"The {role} was to answer within {seconds:g} s and did not.")


def answer(models: Models, job: Job, on_text: OnText, cancelled: Cancelled) -> tuple[Reply, ...]:
    """Asks the job's model: one reply a call, whatever the model does."""
    try:
        if job.role == "prm":
            answers: Any = models.prm.score([call.body for call in job.calls if isinstance(call.body, Clip)])
        else:
            model = models.orienter if job.role == "orienter" else models.verifier
            questions = [call.body for call in job.calls if isinstance(call.body, Question)]
            answers = model.ask(questions, on_text, cancelled)
        found = tuple(answers)
    except Exception as error:
        failure = Failure("missing", f"The {job.role}'s model failed: {type(error).__name__}: {error}.")
        return tuple(failure for _ in job.calls)
    if len(found) != len(job.calls):
        said = f"The {job.role}'s model was asked {len(job.calls)} questions and gave {len(found)} answers."
        return tuple(Failure("missing", said) for _ in job.calls)
    return tuple(_as_reply(job.role, one) for one in found)


def _as_reply(role: Role, answer: Any) -> Reply:
    if role != "prm":
        return answer if isinstance(answer, str) else Failure("missing", f"The {role} must answer with text.")
    try:
        return float(answer)
    except (TypeError, ValueError):
        return Failure("missing", f"The prm must answer with a number, and {answer!r} came.")
