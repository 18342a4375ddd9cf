"""What our engine saves within and between calls, each against the same graph without the saving.

python _engines_calls.py THREADS ROUNDS PREFIXES: one JSON object on standard output. Seconds are CPU-seconds of this process.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _engines_checkpoints import FAMILIES, exported
from _engines_contender import OUT

from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.loop.plan import Fact, Subtask
from compass_edge.models import Image, Question
from compass_edge.prms.robometer import RoboMeter, server_slots
from compass_edge.roles import verifier
from compass_edge.roles.schema import choice, record, whole_or_null, words

_HEIGHT, _WIDTH = 240, 240  # as two of the three films that come with RoboMeter
_SLOTS = 8
_SUBTASK = Subtask(
    "Put the red block into the left box.",
    "The red block lies on the table beside the gripper, and both boxes are empty.",
    "The red block leaves the table and comes to rest inside the left box; one block moves.",
    "The red block is in the left box, the gripper is open above it.",
)
# The fields of a Verifier's reply. With random weights a text is as long as it may be: as long as short sentences are.
_REPLY = record(
    start=words(28),
    during=words(28),
    candidate=words(28),
    change=words(28),
    count_start=whole_or_null(0, 99),
    count_candidate=whole_or_null(0, 99),
    verdict=choice("done", "not_done", "already_done", "uncertain"),
)


class Camera:
    """Frames of noise, no two the same."""

    def __init__(self) -> None:
        self._dice, self._count = np.random.default_rng(0), 0

    def frame(self) -> Image:
        self._count += 1
        return Image(f"frame {self._count}", self._dice.integers(0, 256, (_HEIGHT, _WIDTH, 3), dtype=np.uint8))


def _spent(run: Callable[[], Any]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def forced_tokens(family: str, threads: int, rounds: int) -> dict[str, float]:
    """A reply of about 60 tokens behind a prompt that is remembered: only the reply costs."""
    models = {
        forced: OnnxVlm(
            exported(family, "int8"), Options(threads=threads, context=512, batch=1, prefixes=0, forced=forced)
        )
        for forced in (True, False)
    }
    question = Question(("Reply with the JSON object now.",), _REPLY, 512)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    tokens: dict[bool, int] = {}
    for turn in range(rounds + 1):
        for forced, model in models.items():
            replies: list[str] = []
            spent = _spent(lambda m=model, r=replies: r.extend(m.ask([question], lambda i, t: None, lambda: False)))
            tokens[forced] = len(model.body.tokenizer.encode(replies[0]))
            if turn:
                seconds[forced].append(spent / tokens[forced])
    ours, plain = (statistics.median(seconds[forced]) for forced in (True, False))
    return {
        "speedup": plain / ours,
        "reply_tokens": tokens[True],
        "ms_a_token": 1e3 * ours,
        "ms_a_token_plain": 1e3 * plain,
    }


def reverify(family: str, threads: int, rounds: int) -> dict[str, float]:
    """Time to the first word of a Verifier's reply: the first question about a step, and the next one after a rejection."""
    model = OnnxVlm(exported(family, "int8"), Options(threads=threads, context=2048, batch=1, prefixes=1))
    camera, first, again = Camera(), [], []
    memory = tuple(
        Fact(number, f"Block number {number} lies in the right box, the gripper is empty.") for number in (1, 2, 3)
    )
    for turn in range(rounds + 1):
        model.body.rows.forget_all()
        start = camera.frame()
        for seconds in (first, again):
            question = verifier.question(_SUBTASK, memory, start, camera.frame(), camera.frame(), tau=True)
            spent = _first_word(model, question)
            if turn:
                seconds.append(spent)
    before, after = statistics.median(first), statistics.median(again)
    return {"speedup": before / after, "first_ms": 1e3 * before, "again_ms": 1e3 * after}


def _first_word(model: OnnxVlm, question: Question) -> float:
    begin, at = time.process_time(), []

    def on_text(_index: int, _text: str) -> None:
        at.append(time.process_time())

    model.ask([question], on_text, lambda: bool(at))
    return at[0] - begin


def frame_steps(threads: int, prefixes: int) -> dict[str, float]:
    """Every prefix of a film: ours, and the public schedule, in which each one encodes its frames and is read from nothing."""
    model = RoboMeter(exported("robometer", "int8"), Options(threads=threads, context=2048, batch=1, prefixes=1))
    camera, sentence = Camera(), "Pick up the yellow cup and stack it on the other cup"
    frames = [camera.frame() for _ in range(prefixes)]
    body = model.body
    body.forget()
    made: list[Any] = []
    ours = _spent(lambda: made.append(model.curve(sentence, frames)))
    passes, tokens = body.vision.passes, body.decoder.tokens
    body.forget()
    public, scores = 0.0, []
    for count in range(1, prefixes + 1):
        picked = [frames[place] for place in server_slots(count, _SLOTS)]
        unknown = [Image(f"{count} {slot} {frame.digest}", frame.pixels) for slot, frame in enumerate(picked)]
        body.rows.forget_all()
        public += _spent(lambda some=unknown: scores.append(_scored(model, sentence, some)))
    return {
        "speedup": public / ours,
        "vision_passes_ratio": body.vision.passes / passes,
        "tokens_ratio": body.decoder.tokens / tokens,
        "worst_difference": float(np.abs(made[0].progress - np.array(scores)).max()),
        "ours_s": ours,
        "public_s": public,
    }


def _scored(model: RoboMeter, sentence: str, frames: Sequence[Image]) -> float:
    return float(model._ask([model._prompt(sentence, frames)], every=False)[0].progress[-1])


def main() -> None:
    threads, rounds, prefixes = map(int, sys.argv[1:4])
    told: dict[str, Any] = {
        "forced": {family: forced_tokens(family, threads, rounds) for family in FAMILIES},
        "reverify": {family: reverify(family, threads, rounds) for family in FAMILIES},
        "frame_steps": frame_steps(threads, prefixes),
    }
    told["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    OUT.write(json.dumps(told) + "\n")
    OUT.flush()


if __name__ == "__main__":
    main()
