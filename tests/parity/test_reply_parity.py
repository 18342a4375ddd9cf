"""Replies of the engine and what it holds likely, against transformers: every family and dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from engine_samples import LOGITS, OURS, Case, drawn, furthest, prompted, several_sizes

from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.models import Question

pytest_plugins = ["engine_cases"]
pytestmark = pytest.mark.usefixtures("one_thread")

SCHEMA = {
    "type": "object",
    "properties": {
        "seen": {"type": "string", "maxLength": 6},
        "done": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["seen", "done", "count"],
    "additionalProperties": False,
}


def questions() -> list[Question]:
    return [
        Question(("What is in the picture?", drawn(112, 112, 5)), SCHEMA),
        Question((drawn(224, 112, 5), drawn(112, 112, 5), "And in these two?"), SCHEMA, 30),
        Question(("Just say something.",), {"type": "string", "maxLength": 8}),
        Question(("What is in the picture?", drawn(96, 160, 5)), SCHEMA),
    ]


def ask(vlm: OnnxVlm, asked: Sequence[Question]) -> list[str]:
    told = [""] * len(asked)

    def on_text(index: int, text: str) -> None:
        told[index] += text

    replies = vlm.ask(asked, on_text, lambda: False)
    assert replies == told
    return replies


def test_replies_are_those_of_transformers(case: Case) -> None:
    vlm, asked = case.open(), questions()
    expected = [case.reference.reply(vlm.body, question) for question in asked]
    assert len(set(expected)) == len(expected)
    assert ask(vlm, asked) == expected
    assert [ask(vlm, [question])[0] for question in reversed(asked)] == expected[::-1]
    assert ask(vlm, asked[1:3]) == expected[1:3]


@pytest.mark.parametrize(
    "options",
    [{"forced": False}, {"prefixes": 0}, {"vision_bytes": 0},
     {"forced": False, "prefixes": 0, "vision_bytes": 0, "snapshot_bytes": 0}],
)  # fmt: skip
def test_caches_and_forced_tokens_change_nothing(case: Case, options: dict[str, Any]) -> None:
    asked = questions()
    plain, other = case.open(), case.open(**options)
    replies = [ask(plain, asked), ask(plain, asked[:2]), ask(plain, asked)]
    assert [ask(other, asked), ask(other, asked[:2]), ask(other, asked)] == replies
    assert plain.body.vision.passes == 3  # pictures that differ
    assert plain.body.rows.reused > 0
    if "vision_bytes" in options:
        assert other.body.vision.passes > 3
    if "forced" in options:
        assert other.body.decoder.passes > 1.5 * plain.body.decoder.passes
    prompt = several_sizes(plain.body)
    places = [len(prompt) - 30, len(prompt) - 1]
    found = [vlm.body.read(prompt, places)[1]["logits"].copy() for vlm in (plain, other) for _ in range(2)]
    for logits in found[1:]:
        assert furthest(logits, found[0]) < OURS


def test_log_probabilities_are_those_of_transformers(case: Case) -> None:
    parts = ("Is it done? ", drawn(112, 112, 6), drawn(160, 96, 6))
    body = case.vlm.body
    for text in ("True", "Falsch, älter"):
        tokens = list(text.encode())
        prompt = prompted(body, *parts)
        logits = torch.from_numpy(case.reference.follow(prompt, tokens).logits[len(prompt) - 1 : -1])
        expected = logits.log_softmax(-1)[range(len(tokens)), tokens]
        assert furthest(case.vlm.log_probabilities(parts, text), expected) < LOGITS
