"""Models that know the scripted world. Pure functions of their input, as every model must be."""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compass_edge.loop.call import Call, Models
from compass_edge.loop.lanes import Job
from compass_edge.models import Cancelled, Clip, Image, OnText, Question
from compass_edge.scripted.world import Fault, StepScript, World

# What P says of a step that has not begun, and of one that is complete.
IDLE, COMPLETE = 0.03, 0.97
NEVER_NS = 10**15


class ScriptedFailure(Exception):
    """What the script told the model to raise."""


def _fault(world: World, role: str, asked: str, tick: int) -> Fault | None:
    return next(
        (f for f in world.faults if f.role == role and f.asked in ("", asked) and f.first <= tick <= f.last),
        None,
    )


def _newest(body: Clip | Question) -> int:
    images = body.frames if isinstance(body, Clip) else [part for part in body.parts if isinstance(part, Image)]
    return int(images[-1].pixels)


def _asked(question: Question) -> str:
    fields = question.schema["properties"]
    return "first" if "grounded" in fields else "review" if "omitted" in fields else "next"


@dataclass(frozen=True, slots=True)
class ScriptedPrm:
    world: World
    name: str = "scripted-prm"
    max_batch: int = 1
    seconds: float = 0.0  # really slept, for lanes on threads

    def score(self, clips: Sequence[Clip]) -> Sequence[Any]:
        time.sleep(self.seconds * len(clips))
        return [self._score(clip) for clip in clips]

    def _score(self, clip: Clip) -> Any:
        tick = _newest(clip)
        fault = _fault(self.world, "prm", "score", tick)
        if fault is not None:
            if fault.reply in ("late", "raise"):
                raise ScriptedFailure(f"P was told to fail at tick {tick}")
            return float(fault.reply)
        names = {text: step.happening for step in self.world.steps for text in (step.sentence, step.outcome)}
        since = int(clip.frames[0].pixels)
        return IDLE + (COMPLETE - IDLE) * self.world.fraction(names.get(clip.sentence, ""), since, tick)


@dataclass(frozen=True, slots=True)
class _ScriptedTalker(ABC):
    world: World
    seconds: float = 0.0
    max_batch: int = 1

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        return [self._ask(index, question, on_text, cancelled) for index, question in enumerate(questions)]

    def _ask(self, index: int, question: Question, on_text: OnText, cancelled: Cancelled) -> str:
        text, written = self.answer(question), ""
        pieces = re.findall(r"[^,]*,?", text)
        for piece in pieces:
            if cancelled():
                break
            time.sleep(self.seconds / len(pieces))
            written += piece
            on_text(index, piece)
        return written

    @abstractmethod
    def answer(self, question: Question) -> str: ...

    def wrong(self, role: str, asked: str, question: Question) -> str | None:
        tick = _newest(question)
        fault = _fault(self.world, role, asked, tick)
        if fault is None:
            return None
        if fault.reply in ("late", "raise"):
            raise ScriptedFailure(f"The {role} was told to fail at tick {tick}")
        return fault.reply


@dataclass(frozen=True, slots=True)
class ScriptedOrienter(_ScriptedTalker):
    name: str = "scripted-orienter"

    def answer(self, question: Question) -> str:
        asked = _asked(question)
        wrong = self.wrong("orienter", asked, question)
        if wrong is not None:
            return wrong
        world, tick, tau = self.world, _newest(question), "tau" in question.schema["properties"]
        if asked == "review":
            return json.dumps({"omitted": [_planned(world.step(step)) for step in world.omitted]})
        if asked == "first":
            objects = [{"name": name, "count": count} for name, count in world.objects.items()]
            if world.grounded_from is None or tick < world.grounded_from:
                return json.dumps({"objects": [], "grounded": False, "plan": [], **_described(None, tau)})
            plan = [_planned(world.step(step)) for step in world.plan]
            described = _described(world.step(world.plan[0]), tau)
            return json.dumps({"objects": objects, "grounded": True, "plan": plan, **described})
        text = " ".join(part for part in question.parts if isinstance(part, str))
        found = re.search(r"Next open step: (\d+)", text)
        step = int(found.group(1)) if found else 0
        edits, described_id = world.edits.get(step, []), world.describes.get(step, step)
        return json.dumps({"edits": edits, **_described(world.step(described_id), tau)})


def _planned(step: StepScript) -> dict[str, Any]:
    return {"outcome": step.outcome, "criterion": step.criterion, "times": 1}


def _described(step: StepScript | None, tau: bool) -> dict[str, Any]:
    if step is None:
        return {"subtask": "", "before": "", **({"tau": ""} if tau else {}), "after": "", "completion": "lasting"}
    return {
        "subtask": step.sentence,
        "before": f"not yet: {step.outcome}",
        **({"tau": step.tau or step.outcome} if tau else {}),
        "after": step.criterion,
        "completion": step.completion,
    }


@dataclass(frozen=True, slots=True)
class ScriptedVerifier(_ScriptedTalker):
    name: str = "scripted-verifier"

    def answer(self, question: Question) -> str:
        wrong = self.wrong("verifier", "verify", question)
        if wrong is not None:
            return wrong
        world = self.world
        start, during, candidate = (int(part.pixels) for part in question.parts if isinstance(part, Image))
        text = " ".join(part for part in question.parts if isinstance(part, str))
        names = {sentence: step.happening for step in world.steps for sentence in (step.sentence, step.outcome)}
        told = max((sentence for sentence in names if json.dumps(sentence) in text), key=len, default="")
        happening = names.get(told, "")
        done = world.fraction(happening, start, candidate) >= 1.0
        before = any(one.name == happening and one.end <= start for one in world.happenings)
        verdict = "done" if done else "already_done" if before else "not_done"
        seen = {"start": world.seen(start), "during": world.seen(during), "candidate": world.seen(candidate)}
        change = f"{told}: {'finished' if done else 'not finished'}"
        counts = {"count_start": None, "count_candidate": None}
        return json.dumps({**seen, "change": change, **counts, "verdict": verdict})


def scripted_models(world: World, seconds: Mapping[str, float] | None = None, batch: int = 1) -> Models:
    took = {"orienter": 0.0, "prm": 0.0, "verifier": 0.0, **(seconds or {})}
    return Models(
        ScriptedOrienter(world, took["orienter"], batch),
        ScriptedPrm(world, seconds=took["prm"], max_batch=batch),
        ScriptedVerifier(world, took["verifier"], batch),
    )


@dataclass(frozen=True, slots=True)
class ScriptedLatency:
    """Seconds a call, by role; calls that go to a model together take the sum. For lanes in virtual time."""

    seconds: Mapping[str, float]
    world: World | None = None

    def __call__(self, job: Job) -> int:
        if any(self._late(call) for call in job.calls):
            return NEVER_NS
        return round(self.seconds[job.role] * 1e9) * len(job.calls)

    def _late(self, call: Call) -> bool:
        if self.world is None:
            return False
        fault = _fault(self.world, call.role, call.asked, _newest(call.body))
        return fault is not None and fault.reply == "late"
