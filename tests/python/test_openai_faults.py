"""The client against a server that misbehaves in every way that was seen or feared, or that is not there."""

from __future__ import annotations

import socket

import pytest
from openai_samples import BLANKS, REPLY, Start, asked, good, model_of, question, refused
from stub_server import Behaviour, Exchange, chunk, stream

from compass_edge.engines.openai import Endpoint, OpenAiModel, probe
from compass_edge.loop.call import Call, Failure, Models
from compass_edge.loop.lanes import Job, answer
from compass_edge.loop.mark import Mark

pytest_plugins = ["openai_server"]

FINAL: list[tuple[Behaviour, str]] = [
    (lambda e: e.events("", finish="stop"), "sent an empty reply"),
    (lambda e: e.events("\n \n", finish="stop"), "sent an empty reply"),
    (lambda e: e.events("", finish="content_filter"), "'content_filter'"),
    (lambda e: e.events("<think>a</think>"), "think and wrote nothing else"),
    (
        lambda e: (e.head(), e.raw(f"data: {chunk(None, 'length', reasoning='Hm')}\n\n".encode())),
        "spent max_tokens on it",
    ),
    (lambda e: (e.head(), e.raw(f"data: {chunk(refusal='No.')}\n\n".encode())), "refuse: 'No.'"),
    (
        lambda e: e.whole('{"error": {"message": "Too long\\n by 3 tokens"}}', "400 Bad Request"),
        "Too long by 3 tokens.",
    ),
    (lambda e: e.whole('{"detail": [{"loc": ["body"]}]}', "422 Unprocessable"), '[{"loc": ["body"]}].'),
    (lambda e: e.whole("", "401 Unauthorized"), "said: nothing. (Its key is read"),
    (lambda e: e.whole('{"object":"error","message":"no such model"}', "404 Not Found"), "no such model. (Is the URL"),
    (lambda e: e.whole("", "307 Temporary Redirect", Location="http://10.0.0.1/"), "Redirections are not followed"),
    (
        lambda e: e.whole("<!DOCTYPE html><form>", kind="text/html"),
        "sent text/html where a reply was expected: a page of HTML",
    ),
    (lambda e: e.whole(b"\x1f\x8b", Content_Encoding="gzip"), "encoded as gzip"),
    (
        lambda e: (e.head(), e.raw(b'data: {"error": {"code": 400, "message": "bad"}}\n\n')),
        "with an error and said: bad.",
    ),
    (lambda e: e.raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "does not speak HTTP"),
    (lambda e: e.raw(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 70000 + b"\r\n\r\n"), "does not speak HTTP"),
]


@pytest.mark.parametrize(("behave", "said"), FINAL, ids=[said for _, said in FINAL])
def test_what_would_end_in_the_same_way_is_not_tried_again(start: Start, behave: Behaviour, said: str) -> None:
    server = start(behave)
    assert said in refused(model_of(server))
    assert len(server.chats) == 1


def cut_chunk(exchange: Exchange) -> None:
    exchange.head(Transfer_Encoding="chunked")
    exchange.raw(b"500\r\n" + stream(REPLY)[:60])


def no_last_chunk(exchange: Exchange) -> None:
    exchange.chunked([stream(REPLY, finish=None, done=False)], end=False)


def short_body(exchange: Exchange) -> None:
    exchange.head(kind="application/json", Content_Length="1000")
    exchange.raw(b'{"choices": []')


def bad_utf8(exchange: Exchange) -> None:
    exchange.head()
    exchange.raw(b'data: {"choices": [{"delta": {"content": "\xc3\x28"}}]}\n\n')


def damaged_line(exchange: Exchange) -> None:
    exchange.head()
    exchange.raw(stream(*REPLY).replace(b"data", b"d\xffta", 4))


def long_line(exchange: Exchange) -> None:
    exchange.head()
    for _ in range(40):
        exchange.raw(b"data: " + b"x" * (1 << 16))


def half_sent(exchange: Exchange) -> None:
    exchange.head()
    exchange.raw(stream(*REPLY[:20], finish=None, done=False))
    exchange.reset()


def llama_error(exchange: Exchange) -> None:
    exchange.head()
    exchange.raw(b'error: {"code": 500, "message": "slot lost"}\n\n')


PASSING: list[tuple[Behaviour, str]] = [
    (
        lambda e: e.whole("overloaded", "503 Service Unavailable"),
        "answered 503 Service Unavailable and said: overloaded.",
    ),
    (lambda e: e.whole('{"error": "slow down"}', "429 Too Many Requests", Retry_After="0"), "slow down."),
    (lambda e: e.whole("<html>", "502 Bad Gateway", Retry_After="Thu, 01 Jan 1970 00:00:00 GMT"), "a page of HTML."),
    (lambda e: e.whole("", "500 Internal Server Error", Retry_After="soon"), "said: nothing."),
    (lambda e: e.reset(), "broke off: Connection reset by peer."),
    (lambda e: None, "closed the connection without an answer."),
    (cut_chunk, "in the middle of its reply."),
    (no_last_chunk, "in the middle of its reply."),
    (short_body, "986 bytes before the end"),
    (bad_utf8, "not UTF-8"),
    (damaged_line, "no server-sent event"),
    (long_line, "a line of more than"),
    (half_sent, "broke off: Connection reset by peer."),
    (llama_error, "slot lost."),
    (lambda e: e.events(REPLY, finish=None, done=False), "ended the stream before"),
    (lambda e: (e.head(), e.raw(b"data: {broken\n\n")), "no JSON: '{broken'"),
    (lambda e: (e.head(), e.raw(b"data: [1]\n\n")), "without choices"),
    (lambda e: (e.head(), e.raw(b'data: {"choices": [{"delta": 3}]}\n\n')), "another form"),
    (lambda e: (e.head(), e.raw(b'data: {"choices": [{"delta": {"content": 3}}]}\n\n')), "content is no text"),
    (lambda e: (e.head(), e.raw(b'data: {"error": "out of memory"}\n\n')), "out of memory."),
    (lambda e: e.whole(b'{"choices": [{"message": {"content": "\xff"}}]}'), "not UTF-8"),
]


@pytest.mark.parametrize(("behave", "said"), PASSING, ids=range(len(PASSING)))
def test_what_may_pass_is_tried_again(start: Start, behave: Behaviour, said: str) -> None:
    server, heard = start(behave, behave, good), list[str]()
    model = model_of(server)
    assert asked(model, lambda index, text: heard.append(text)) == REPLY
    assert "".join(heard) == REPLY, "a listener hears each character once"
    assert model.counts.retried == 2
    assert model.counts.failed == 0

    server = start(behave)
    message = refused(model_of(server))
    assert said in message
    assert message.endswith("It was tried 3 times.")
    assert len(server.chats) == 3


def test_a_second_attempt_that_differs_is_not_heard(start: Start) -> None:
    server, heard = (
        start(lambda e: (e.head(), e.raw(stream('{"said": "x', finish=None, done=False)), e.reset()), good),
        [],
    )
    assert asked(model_of(server), lambda index, text: heard.append(text)) == REPLY
    assert heard in (['{"said": "x'], [])  # a reset may overtake what was sent before it


def test_nobody_listens_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    model = OpenAiModel(Endpoint(f"http://localhost:{port}/v1", "stub", retries=1, backoff_s=0.01))
    assert "refused the connection. Is it running? It was tried 2 times." in refused(model)
    assert "refused the connection" in probe(model.endpoint).trouble


def test_no_such_name() -> None:
    model = OpenAiModel(Endpoint("https://nowhere.invalid/v1", "stub", retries=0))
    assert "could not be resolved" in refused(model)


def test_tls_where_there_is_none(start: Start) -> None:
    server = start(good)
    model = OpenAiModel(Endpoint(server.url.replace("http:", "https:"), "stub", retries=0))
    assert "TLS" in refused(model)


def test_retry_after_is_respected(start: Start) -> None:
    server = start(lambda e: e.whole("", "503 Service Unavailable", Retry_After="100"), good)
    message = refused(model_of(server, deadline_s=30.0))
    assert "No time is left to try again after 100.0 s." in message
    assert len(server.chats) == 1


def test_what_the_loop_makes_of_it(start: Start) -> None:
    """Text that is wrong stays text, so that it can be repaired or rejected; what is no text is missing, and says why."""
    server = start(lambda e: e.events("{", BLANKS))
    model = model_of(server, retries=0)
    models = Models(model, None, model)  # type: ignore[arg-type]
    call = Call("verifier", "verify", question(), Mark(0, 0), "key")
    (reply,) = answer(models, Job("verifier", (call,)), lambda i, t: None, lambda: False)
    assert isinstance(reply, str)
    server.behaviours = [lambda e: e.whole("loading", "503 Service Unavailable")]
    (reply,) = answer(models, Job("verifier", (call,)), lambda i, t: None, lambda: False)
    assert isinstance(reply, Failure)
    assert reply.trouble == "missing"
    assert "answered 503 Service Unavailable and said: loading." in reply.detail
