"""Models whose replies are a pure function of their input, and otherwise as wild as can be: for holding executors equal."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compass_edge.loop.call import Call, Models
from compass_edge.loop.lanes import Job
from compass_edge.models import Cancelled, Clip, Image, OnText, Question
from compass_edge.scripted.world import World

NEVER_NS = 10**15


def chaos_world(seed: int) -> World:
    """Only the ticks matter: what they mean is up to the models."""
    dice = random.Random(f"world {seed}")
    ticks = dice.randint(5, 70)
    missing = tuple(sorted(dice.sample(range(1, ticks), dice.randint(0, 2)))) if dice.random() < 0.3 else ()
    return World(f"chaos {seed}", f"do things {seed}", ticks, (), (), (), missing=missing)


def _dice(*inputs: object) -> random.Random:
    return random.Random(repr(inputs))


def _images(question: Question) -> list[str]:
    return [part.digest for part in question.parts if isinstance(part, Image)]


def _text(question: Question) -> str:
    return "".join(part for part in question.parts if isinstance(part, str))


def _steps(dice: random.Random, most: int) -> list[dict[str, Any]]:
    return [
        {"outcome": f"outcome {dice.randint(0, 9)}", "criterion": "it shows", "times": 1 + (dice.random() < 0.03)}
        for _ in range(dice.randint(1, most))
    ]


def _description(dice: random.Random) -> dict[str, Any]:
    return {
        "subtask": f"do {dice.randint(0, 9)}",
        "before": "",
        "tau": f"t{dice.randint(0, 3)}",
        "after": "",
        "completion": dice.choice(["lasting", "brief", "observation"]),
    }


def _spoilt(dice: random.Random, text: str) -> str:
    """Now and then not what the schema asks for."""
    roll = dice.random()
    if roll < 0.04:
        return text[: len(text) // 2]
    if roll < 0.06:
        return "I think that it is done."
    if roll < 0.07:
        raise RuntimeError("out of memory")
    return text


@dataclass(frozen=True)
class ChaosPrm:
    name: str = "chaos-prm"
    max_batch: int = 1

    def score(self, clips: Sequence[Clip]) -> list[Any]:
        return [self._score(clip) for clip in clips]

    def _score(self, clip: Clip) -> Any:
        start, newest = int(clip.frames[0].pixels), int(clip.frames[-1].pixels)
        step = _dice("step", clip.sentence, clip.frames[0].digest)
        length, top, noise = step.randint(2, 25), step.choice([0.5, 0.8, 1.0, 1.0]), step.choice([0.0, 0.1, 0.4])
        tick = _dice("tick", clip.sentence, [frame.digest for frame in clip.frames])
        if tick.random() < 0.02:
            return tick.choice([float("nan"), 7.0, -1.0])
        value = min((newest - start) / length, 1.0) * top
        if step.random() < 0.3 and newest - start > length + 2:
            value *= 0.4  # the hand has left
        return min(max(value + tick.uniform(-noise, noise), 0.0), 1.0)


@dataclass(frozen=True)
class ChaosOrienter:
    name: str = "chaos-orienter"
    max_batch: int = 1

    def ask(self, questions: Sequence[Question], on_text: OnText, _cancelled: Cancelled) -> list[str]:
        return [_told(index, self._answer(question), on_text) for index, question in enumerate(questions)]

    def _answer(self, question: Question) -> str:
        text = _text(question)
        dice = _dice("orienter", text, _images(question))
        fields = question.schema["properties"]
        if "grounded" in fields:
            if dice.random() < 0.15:
                nothing = {"subtask": "", "before": "", "tau": "", "after": "", "completion": "lasting"}
                return _spoilt(dice, json.dumps({"objects": [], "grounded": False, "plan": [], **nothing}))
            objects = [{"name": "block", "count": 2}]
            first = {"objects": objects, "grounded": True, "plan": _steps(dice, 4), **_description(dice)}
            return _spoilt(dice, json.dumps(first))
        if "omitted" in fields:
            return _spoilt(dice, json.dumps({"omitted": _steps(dice, 2) if dice.random() < 0.3 else []}))
        open_step = int(re.findall(r"Next open step: (\d+)", text)[-1])
        edits = [self._edit(dice, open_step) for _ in range(dice.choice([0, 1, 1, 2]))]
        return _spoilt(dice, json.dumps({"edits": edits, **_description(dice)}))

    @staticmethod
    def _edit(dice: random.Random, open_step: int) -> dict[str, Any]:
        """Some of these are not allowed: a step that is not there, the last open one removed."""
        op = dice.choice(["add", "add", "correct", "remove", "move"])
        step = None if op == "add" else open_step + dice.randint(0, 1)
        before = dice.choice([None, None, open_step]) if op in ("add", "move") else None
        words = {"outcome": f"outcome {dice.randint(0, 9)}", "criterion": "it shows"}
        return {"op": op, "id": step, "before": before, **words, "times": 1}


@dataclass(frozen=True)
class ChaosVerifier:
    name: str = "chaos-verifier"
    max_batch: int = 1

    def ask(self, questions: Sequence[Question], on_text: OnText, _cancelled: Cancelled) -> list[str]:
        return [_told(index, self._answer(question), on_text) for index, question in enumerate(questions)]

    def _answer(self, question: Question) -> str:
        dice = _dice("verifier", _text(question), _images(question))
        seen = {name: f"seen {dice.randint(0, 99)}" for name in ("start", "during", "candidate", "change")}
        verdict = dice.choice(["done", "done", "done", "not_done", "already_done", "uncertain"])
        counts = {"count_start": None, "count_candidate": None}
        return _spoilt(dice, json.dumps({**seen, **counts, "verdict": verdict}))


def _told(index: int, text: str, on_text: OnText) -> str:
    for place in range(0, len(text), 7):
        on_text(index, text[place : place + 7])
    return text


def chaos_models(max_batch: int = 1) -> Models:
    return Models(ChaosOrienter(max_batch=max_batch), ChaosPrm(max_batch=max_batch), ChaosVerifier(max_batch=max_batch))


@dataclass(frozen=True)
class ChaosLatency:
    """Any order of completion; some calls never come back. Late is a property of the call, so that it is late for all."""

    seed: int
    late: float = 0.0

    def __call__(self, job: Job) -> int:
        if any(self.is_late(call) for call in job.calls):
            return NEVER_NS
        dice = _dice("latency", self.seed, [call.key for call in job.calls])
        return dice.choice([0, 1, 10**6, 10**8, 10**9, dice.randint(0, 10**10)])

    def is_late(self, call: Call) -> bool:
        return _dice("late", call.key).random() < self.late
