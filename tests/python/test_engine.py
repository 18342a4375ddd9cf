"""The engine on ONNX Runtime with small models of random weights: replies, limits, likelihoods. No torch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from exported_samples import EACH, OPTIONS, SCHEMA, Open, Samples, ask, picture, question

from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.errors import UsageError
from compass_edge.loop.plan import Fact, Plan, Step, Subtask
from compass_edge.models import Image, Question
from compass_edge.roles import orienter, verifier
from compass_edge.roles.schema import choice, flag, record, several, words


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def opened(samples: Samples) -> Open:
    return samples.vlm


# Replies


def real_questions() -> dict[str, Question]:
    """What the loop really asks, with a reply long enough to be finished whatever it says."""
    plan = Plan(
        (Step(1, "the lid is off", "the box is open", True), Step(2, "the block is in", "it lies inside", False)), 1
    )
    subtask = Subtask(
        "Put the red block into the box.", "It lies beside.", "It moves inside.", "It lies inside.", "lasting"
    )
    fact = (Fact(1, "The box is open."),)
    frames = [picture(number) for number in range(3)]
    instruction = 'Open the box, then put the "red" block in.'
    return {
        "first": orienter.first(instruction, frames[0], tau=True, max_steps=2),
        "next": orienter.next_step(instruction, plan, fact, frames[0], tau=True, max_steps=2),
        "review": orienter.review(instruction, plan, fact, frames[0], max_steps=2, repair="It was empty."),
        "verify": verifier.question(subtask, fact, *frames, tau=True),
    }


@pytest.mark.parametrize("kind", ["qwen3-vl", "qwen3.5"])
@pytest.mark.parametrize("name", ["first", "next", "review", "verify"])
def test_a_reply_fits_the_schema_of_the_loops_questions(opened: Open, kind: str, name: str) -> None:
    """Whatever the weights: these are random."""
    asked = replace(real_questions()[name], max_tokens=16384)
    model, pieces = opened(kind, context=24576, batch=1, prefixes=0), list[str]()
    (text,) = model.ask([asked], lambda index, piece: pieces.append(piece), lambda: False)
    assert "".join(pieces) == text
    found = json.loads(text)
    jsonschema.validate(found, asked.schema)
    assert list(found) == list(asked.schema["properties"])


@EACH
def test_a_batch_says_what_single_questions_say(opened: Open, kind: str, dialect: str) -> None:
    questions = [
        question(0),
        question(1, pictures=3),
        question(2, schema=record(seen=flag(), names=several(words(5), 3))),
    ]
    alone = [ask(opened(kind, dialect), asked)[0] for asked in questions]
    model, heard = opened(kind, dialect), ["", "", ""]

    def on_text(index: int, piece: str) -> None:
        heard[index] += piece

    assert model.ask(questions, on_text, lambda: False) == alone == heard
    assert ask(model, *reversed(questions)) == alone[::-1]
    assert [ask(model, asked)[0] for asked in questions] == alone
    assert len(set(alone)) == 3


@EACH
def test_each_token_is_the_likeliest_that_the_schema_allows(opened: Open, kind: str, dialect: str) -> None:
    """Prompt and reply read again as one, in a model that has seen nothing: what was chosen token by token is chosen there."""
    asked = [question(0), question(1, schema=record(why=words(40), seen=flag(), what=words(40)))]
    for one, text in zip(asked, ask(opened(kind, dialect), *asked), strict=True):
        fresh = opened(kind, dialect)
        tokens = list(text.encode())  # a byte is a token; encoding a text would compose its accents
        prompt = fresh.body.prompt(one.parts, {"enable_thinking": False}, generation=True, begun=tokens)
        places = range(len(prompt) - len(tokens) - 1, len(prompt) - 1)
        logits = fresh.body.read(prompt, places)[1]["logits"]
        constraint = fresh._grammars.start(one.schema)
        for token, row in zip(tokens, logits, strict=True):
            constraint.mask(row)
            assert row[token] >= row.max() - 1e-3
            constraint.take(token)
        assert constraint.over


@EACH
def test_text_that_a_schema_forces_is_not_chosen(opened: Open, kind: str, dialect: str) -> None:
    """Bytes are tokens here, so that there is one spelling: with and without it the same text, in fewer passes."""
    asked = question(schema=record(a_long_name_that_is_always_there=choice("red", "green"), and_another_one=flag()))
    appended, chosen = opened(kind, dialect), opened(kind, dialect, forced=False)
    text = ask(appended, asked)
    assert text == ask(chosen, asked)
    assert jsonschema.validate(json.loads(text[0]), asked.schema) is None
    assert appended.body.decoder.passes < chosen.body.decoder.passes / 3


@pytest.mark.parametrize("most", [1, 3, 17, 40])
def test_a_reply_ends_at_its_longest(opened: Open, most: int) -> None:
    model = opened()
    whole_text = ask(model, question(schema=record(why=words(60))))[0]
    cut = ask(model, question(schema=record(why=words(60)), most=most))[0]
    assert len(cut.encode()) <= most
    assert whole_text.startswith(cut.rstrip("�"))


def test_nothing_to_ask(opened: Open) -> None:
    assert ask(opened()) == []


def test_a_schema_without_a_choice_needs_no_model(opened: Open) -> None:
    model, asked = opened(), question(schema=record(a={"const": 1}))
    assert ask(model, asked) == ['{"a": 1}']
    before = model.body.decoder.passes
    assert ask(model, asked) == ['{"a": 1}']
    assert model.body.decoder.passes == before + 1  # the end of a prompt that is remembered


# Limits


def test_a_prompt_that_is_too_long_is_said(opened: Open) -> None:
    model = opened(context=256)
    with pytest.raises(UsageError, match=r"A prompt of \d+ tokens came, and the model was opened for 256 \(context\)"):
        ask(model, Question(("word " * 100,), SCHEMA))
    assert json.loads(ask(model, Question(("word",), SCHEMA))[0])


def test_a_reply_that_the_context_has_no_room_for_ends(opened: Open) -> None:
    asked = Question(("word " * 10,), record(why=words(200)), 500)
    long = ask(opened(), asked)[0]
    model = opened(context=160)
    short = ask(model, asked)[0]
    assert 0 < len(short) < len(long)
    assert long.startswith(short.rstrip("�"))
    assert json.loads(ask(model, Question(("word",), record(seen=flag())))[0])


def test_too_many_questions(opened: Open) -> None:
    with pytest.raises(UsageError, match=r"4 questions came, and the model was opened for 3 \(batch\)"):
        ask(opened(), *[question()] * 4)


@pytest.mark.parametrize(
    ("pixels", "told"),
    [
        (None, "has no pixels"),
        (np.zeros((64, 64), np.uint8), "must be RGB of uint8"),
        (np.zeros((64, 64, 4), np.uint8), "must be RGB of uint8"),
        (np.zeros((64, 64, 3), np.float32), "must be RGB of uint8"),
    ],
)
def test_pictures_that_are_none(opened: Open, pixels: Any, told: str) -> None:
    model = opened()
    before = ask(model, question())
    with pytest.raises(UsageError, match=told):
        ask(model, Question((Image("x", pixels), "?"), SCHEMA))
    assert ask(model, question()) == before


# Likelihoods and names


@EACH
def test_likelihoods_are_those_of_the_tokens_one_by_one(opened: Open, kind: str, dialect: str) -> None:
    parts, text = ("Look. ", picture(0), " What is it?"), "a red block"
    model = opened(kind, dialect)
    found = model.log_probabilities(parts, text)
    body, expected = opened(kind, dialect).body, []
    prompt = body.prompt(parts, {"enable_thinking": False}, generation=True)
    row, outputs = body.read(prompt, [len(prompt) - 1])
    logits = outputs["logits"][-1].astype(np.float64)
    for place, token in enumerate(body.tokenizer.encode(text)):
        expected.append(logits[token] - np.log(np.exp(logits - logits.max()).sum()) - logits.max())
        logits = body.advance(row, [[token]], [prompt.next_position + place])["logits"][0, 0].astype(np.float64)
    assert len(found) == len(text)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    np.testing.assert_allclose(model.log_probabilities(parts, text), found, atol=2e-3)  # and remembered
    with pytest.raises(UsageError, match="must have a token"):
        model.log_probabilities(parts, "")


def test_a_name_changes_with_the_weights(samples: Samples, tmp_path: Path) -> None:
    names = {OnnxVlm(samples.model("qwen3-vl", seed=seed), OPTIONS).name.partition("@")[2] for seed in (0, 1)}
    assert len(names) == 2
    moved = OnnxVlm(samples.copy(tmp_path / "elsewhere", "qwen3-vl"), OPTIONS)
    assert moved.name.partition("@")[2] in names
