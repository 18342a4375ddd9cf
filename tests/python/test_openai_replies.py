"""The client and what a server writes: a reply that is streamed, wrapped, endless, cut off, or another than was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_samples import BLANKS, REPLY, SCHEMA, Start, asked, good, model_of, refused
from stub_server import Behaviour, Exchange, chunk, stream

from compass_edge.models import Question
from compass_edge.roles.reply import InvalidReply, read

pytest_plugins = ["openai_server"]

ENDLESS = '{"said": "' + "ha" * 100


def test_a_reply_is_streamed_and_checked(start: Start) -> None:
    server, heard = start(good), list[str]()
    model = model_of(server, extra_body={"top_k": 1})
    assert asked(model, lambda index, text: heard.append(text)) == REPLY == "".join(heard)
    assert len(heard) == len(REPLY)
    sent = server.chats[0].json
    assert (sent["temperature"], sent["seed"], sent["max_tokens"], sent["stream"]) == (0, 0, 64, True)
    assert sent["model"] == "stub"
    assert sent["top_k"] == 1
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
    assert model.counts.replies == 1
    assert model.counts.invalid == model.counts.retried == 0


@pytest.mark.parametrize(
    ("dialect", "field"), [("json_schema", "response_format"), ("vllm", "structured_outputs"), ("llama", "json_schema")]
)
def test_a_schema_is_told_in_one_dialect(start: Start, dialect: Any, field: str) -> None:
    server = start(good)
    asked(model_of(server, dialect=dialect))
    sent = server.chats[0].json
    assert {"response_format", "structured_outputs", "json_schema"} & sent.keys() == {field}
    assert json.dumps(SCHEMA) in json.dumps(sent[field])
    assert sent["messages"][0]["content"] == "What is there?"
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}


def test_without_a_dialect_the_prompt_has_the_schema(start: Start) -> None:
    server = start(good)
    asked(model_of(server, dialect="none", extra_body={}))
    sent = server.chats[0].json
    assert set(sent) == {"model", "messages", "stream", "temperature", "seed", "max_tokens"}
    assert sent["messages"][0]["content"].startswith("What is there?")
    assert json.dumps(SCHEMA) in sent["messages"][0]["content"]


def whole_json(exchange: Exchange) -> None:
    exchange.whole(json.dumps({"choices": [{"message": {"content": REPLY}, "finish_reason": "stop"}]}))


def byte_by_byte(exchange: Exchange) -> None:
    data = stream(REPLY)
    exchange.chunked(data[place : place + 1] for place in range(len(data)))


def decorated(exchange: Exchange) -> None:
    exchange.head()
    exchange.raw(b"\xef\xbb\xbf: keep alive\r\n\r\nevent: message\rid: 1\rretry: 5\r")
    exchange.raw(f"data:{chunk(REPLY[:9])}\r\n\r\n:ping\n\ndata: {chunk(REPLY[9:], 'stop')}\n\n".encode())
    usage = json.dumps({"choices": [], "usage": {"total_tokens": 9}})
    exchange.raw(f"data: {usage}\n\ndata: [DONE]\n\n".encode())


def two_lines_of_data(exchange: Exchange) -> None:
    first, second = chunk(REPLY, "stop").split(", ", 1)
    exchange.head()
    exchange.raw(f"data: {first},\ndata: {second}\n\ndata: [DONE]\n\n".encode())


def thinks_beside(exchange: Exchange) -> None:
    exchange.head()
    exchange.raw(f"data: {chunk(reasoning_content='Hm {')}\n\n".encode() + stream(REPLY))


PROPER: list[Behaviour] = [
    whole_json,
    byte_by_byte,
    decorated,
    two_lines_of_data,
    thinks_beside,
    lambda exchange: exchange.events(REPLY, done=False),
    lambda exchange: exchange.events(REPLY, finish=None),
    lambda exchange: exchange.events("\n", " " * 100, REPLY, "\n"),
]


@pytest.mark.parametrize("behave", PROPER, ids=range(len(PROPER)))
def test_servers_that_are_only_different(start: Start, behave: Behaviour) -> None:
    model = model_of(start(behave))
    assert asked(model).strip() == REPLY
    assert model.counts.replies == 1
    assert model.counts.invalid == model.counts.retried == model.counts.unwrapped == 0


@pytest.mark.parametrize(
    "around",
    [
        ("<think>Is it {3}? I `think`.</think>", ""),
        ("\n<think>\n</think>\n\n", ""),
        ("The template opened it.</think>", ""),
        ("```json\n", "\n```"),
        ("```\n", "\n```\n"),
        ("```JSON ", "```"),
        ("<think>a</think>```json\n", "\n```"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_wrapping_is_taken_off(start: Start, around: tuple[str, str], size: int) -> None:
    text, heard = around[0] + REPLY + around[1], list[str]()
    pieces = [text[place : place + size] for place in range(0, len(text), size)]
    model = model_of(start(lambda exchange: exchange.events(*pieces)))
    assert asked(model, lambda index, piece: heard.append(piece)) == REPLY == "".join(heard)
    assert model.counts.unwrapped == 1
    assert model.counts.invalid == 0


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        (("{", BLANKS), "runaway"),
        (("```json\n{", BLANKS), "runaway"),
        (("```json", BLANKS), "runaway"),
        ((BLANKS,), "runaway"),
        (('{"said":', BLANKS), "runaway"),
        ((ENDLESS,), "runaway"),
        (('{"said": "a", "count": 1' + "0" * 600,), "runaway"),
        (('{"said": "' + "\\u0041" * 100,), "runaway"),
    ],
)
def test_a_reply_that_does_not_end_is_closed_at_once(start: Start, texts: tuple[str, ...], count: str) -> None:
    """The server goes on as long as it is listened to."""

    def loops(exchange: Exchange) -> None:
        exchange.head()
        exchange.raw(stream(*texts, finish=None, done=False))
        exchange.wait()

    server = start(loops)
    model = model_of(server)
    text = asked(model)
    with pytest.raises(InvalidReply):
        read(text, SCHEMA)
    assert getattr(model.counts, count) == model.counts.invalid == model.counts.replies == 1
    assert model.counts.retried == 0
    assert server.chats[0].gone.wait(60)


@pytest.mark.parametrize("beginning", ['{"said": "', "<think>", ""])
def test_a_reply_of_any_length_is_bounded(start: Start, beginning: str) -> None:
    def floods(exchange: Exchange) -> None:
        exchange.head()
        exchange.raw(f"data: {chunk(beginning)}\n\n".encode())
        while True:
            exchange.raw(f"data: {chunk('x' * 1000)}\n\n".encode())

    free = Question(("?",), {"type": "object", "properties": {"said": {"type": "string"}}})
    model = model_of(start(floods))
    text = model.ask([free], lambda index, piece: None, lambda: False)[0]
    assert 64 * 1024 < len(text) < 300 * 1024
    assert model.counts.runaway == model.counts.invalid == 1


def test_so_is_everything_else_that_it_sends(start: Start) -> None:
    def floods(exchange: Exchange) -> None:
        exchange.head()
        while True:
            exchange.raw(f"data: {chunk(reasoning='x' * 100000)}\n\n".encode())

    assert "sent more than" in refused(model_of(start(floods)))


def test_cut_off_at_max_tokens(start: Start) -> None:
    model = model_of(start(lambda exchange: exchange.events(REPLY[:12], finish="length")))
    text = asked(model)
    assert text == REPLY[:12]
    assert model.counts.cut_off == model.counts.invalid == 1
    assert model.counts.retried == 0


@pytest.mark.parametrize("after", ["", "\n" * 100, BLANKS])
def test_a_reply_that_is_whole_is_one_whatever_follows_it(start: Start, after: str) -> None:
    """Nothing that the schema asks for can be missing from an object that is closed and fits."""
    model = model_of(start(lambda exchange: exchange.events(REPLY, after, finish="length")))
    assert json.loads(asked(model)) == json.loads(REPLY)
    assert model.counts.invalid == 0
    assert model.counts.cut_off + model.counts.runaway == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"said": "no count"}',
        '{"said": 3, "count": 3}',
        "I cannot see anything.",
        "<think>It never closes this" + REPLY,
        f"Here it is: {REPLY}",
        f"```json\n{REPLY}\n```\nAnything else?",
        REPLY + REPLY,
    ],
)
def test_what_does_not_fit_is_handed_back_and_counted(start: Start, text: str) -> None:
    """A server that takes the schema and ignores it is seen here, and the loop gets to say what is wrong."""
    model = model_of(start(lambda exchange: exchange.events(*text)))
    with pytest.raises(InvalidReply):
        read(asked(model), SCHEMA)
    assert model.counts.invalid == model.counts.replies == 1
    assert model.counts.failed == model.counts.retried == 0
