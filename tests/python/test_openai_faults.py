"""The client against a server that misbehaves in every way that was seen or feared. Nothing here waits for a real deadline
longer than it must, and no test measures time: what must not wait is given an hour, and hangs if it does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually
from stub_server import Behaviour, Exchange, StubServer, chunk, stream

from compass_edge.engines.openai import Endpoint, OpenAiModel, probe
from compass_edge.errors import CompassError, EnvironmentFault
from compass_edge.loop.call import Call, Failure, Models
from compass_edge.loop.lanes import Job, answer
from compass_edge.loop.mark import Mark
from compass_edge.models import Question
from compass_edge.roles.reply import InvalidReply, read
from compass_edge.roles.schema import record, whole, words

SCHEMA = record(said=words(40), count=whole(0, 99))
REPLY = '{"said": "häkchen ✓ 🙂", "count": 3}'
HOUR = 3600.0

Start = Callable[..., StubServer]


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[StubServer] = []

    def started(*behaviours: Behaviour, **options: Any) -> StubServer:
        servers.append(StubServer(*behaviours, **options))
        return servers[-1]

    yield started
    for server in servers:
        server.close()


def model_of(server: StubServer, **options: Any) -> OpenAiModel:
    return OpenAiModel(Endpoint(server.url, "stub", **{"deadline_s": HOUR, "backoff_s": 0.01, **options}))


def question(text: str = "What is there?") -> Question:
    return Question((text,), SCHEMA, 64)


def asked(model: OpenAiModel, on_text: Callable[[int, str], None] = lambda index, text: None) -> str:
    return model.ask([question()], on_text, lambda: False)[0]


def refused(model: OpenAiModel) -> str:
    with pytest.raises(CompassError) as caught:
        asked(model)
    said = str(caught.value)
    assert said.startswith(f"The server at {model.endpoint.url} ")
    assert said.endswith((".", "?", ")"))
    assert model.counts.failed == 1
    return said


def good(exchange: Exchange) -> None:
    exchange.events(*REPLY)


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


BLANKS = " \n" * 500
ENDLESS = '{"said": "' + "ha" * 100


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    made = [
        *(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        )
    ]
    made += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(path),
        "-out",
        f"{path}.crt",
    ]
    subprocess.run(made, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def test_tls(start: Start, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = start(good, tls=context)
    url = f"https://localhost:{server.port}/v1"
    message = refused(OpenAiModel(Endpoint(url, "stub")))
    assert "could not be trusted: self-signed certificate." in message
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert asked(OpenAiModel(Endpoint(url, "stub"))) == REPLY
    assert "could not be trusted" in refused(OpenAiModel(Endpoint(url.replace("localhost", "127.0.0.1"), "stub")))
    server.behaviours = [never_a_byte]
    chats = len(server.chats)
    assert OpenAiModel(Endpoint(url, "stub", deadline_s=HOUR)).ask(
        [question()], lambda i, t: None, lambda: len(server.chats) > chats
    ) == [""]


def test_retry_after_is_respected(start: Start) -> None:
    server = start(lambda e: e.whole("", "503 Service Unavailable", Retry_After="100"), good)
    message = refused(model_of(server, deadline_s=30.0))
    assert "No time is left to try again after 100.0 s." in message
    assert len(server.chats) == 1


def never_a_byte(exchange: Exchange) -> None:
    exchange.wait()


def a_byte_now_and_then(exchange: Exchange) -> None:
    exchange.head()
    while not exchange.server.stopping.wait(0.02):
        exchange.raw(b":")


def headers_now_and_then(exchange: Exchange) -> None:
    exchange.raw(b"HTTP/1.1 200 OK\r\nX: ")
    while not exchange.server.stopping.wait(0.02):
        exchange.raw(b"y")


def words_now_and_then(exchange: Exchange) -> None:
    exchange.head()
    while not exchange.server.stopping.wait(0.02):
        exchange.raw(f"data: {chunk(' ', reasoning='Hm')}\n\n".replace('" "', '""').encode())


SLOW = [never_a_byte, a_byte_now_and_then, headers_now_and_then, words_now_and_then]


@pytest.mark.parametrize("behave", SLOW)
def test_the_deadline_is_for_the_whole_call(start: Start, behave: Behaviour) -> None:
    server = start(behave)
    model = model_of(server, deadline_s=0.5)
    assert "was to answer within 0.5 s, and that time passed while " in refused(model)
    assert model.counts.out_of_time == 1
    assert model.counts.retried == 0


def test_the_deadline_holds_between_attempts(start: Start) -> None:
    server = start(lambda e: e.whole("", "503 Service Unavailable"))
    model = model_of(server, deadline_s=1.5, retries=100, backoff_s=0.05)
    message = refused(model)
    assert "No time is left" in message or "that time passed" in message
    assert 1 < len(server.chats) < 100


@pytest.mark.parametrize("behave", SLOW)
@pytest.mark.parametrize("batch", [1, 3])
def test_whoever_gave_up_is_not_waited_for(start: Start, behave: Behaviour, batch: int) -> None:
    server = start(behave)
    model = model_of(server, concurrency=2)
    texts = model.ask([question()] * batch, lambda i, t: None, lambda: bool(server.chats))
    assert texts == [""] * batch
    assert eventually(lambda: server.at_once == 0), "the connection stayed open"
    server.behaviours = [good]
    assert asked(model) == REPLY, "its turn was not given back"
    assert model.counts.failed == 0
    assert 1 <= model.counts.cancelled <= batch


def test_giving_up_in_the_middle_keeps_what_came(start: Start) -> None:
    def half(exchange: Exchange) -> None:
        exchange.head()
        exchange.raw(stream(*REPLY[:9], finish=None, done=False))
        exchange.wait()

    server, heard = start(half), list[str]()
    text = model_of(server).ask([question()], lambda i, t: heard.append(t), lambda: len(heard) >= 9)
    assert list(text) == [REPLY[:9]]
    assert server.chats[0].gone.wait(60)


def test_giving_up_while_it_rests_or_waits_for_its_turn(start: Start) -> None:
    server = start(lambda e: e.whole("", "503 Service Unavailable"), never_a_byte)
    model = model_of(server, backoff_s=HOUR)
    assert model.ask([question()], lambda i, t: None, lambda: model.counts.asked > 0 and bool(server.chats)) == [""]

    given_up, first = threading.Event(), model_of(server)
    thread = threading.Thread(target=lambda: first.ask([question()], lambda i, t: None, given_up.is_set))
    thread.start()
    assert eventually(lambda: len(server.chats) == 2)
    looks = iter(range(5))
    assert model.ask([question()], lambda i, t: None, lambda: next(looks, None) is None) == [""]
    assert len(server.chats) == 2, "a second request was sent beside the first"
    given_up.set()
    thread.join()


@pytest.mark.parametrize(("limits", "most"), [((1,), 1), ((2,), 2), ((4, 1), 1), ((3, 2), 2)])
def test_a_server_gets_only_so_many_at_once(start: Start, limits: tuple[int, ...], most: int) -> None:
    """Models of one server share its limit, by whatever name they call it; the smaller number holds."""
    together = threading.Barrier(most)

    def behave(exchange: Exchange) -> None:
        together.wait(60)
        exchange.events(REPLY)

    server = start(behave)
    urls = [server.url, server.url.replace("127.0.0.1", "localhost")]
    models = [
        OpenAiModel(Endpoint(url, "stub", concurrency=limit, deadline_s=HOUR))
        for url, limit in zip(urls, limits, strict=False)
    ]
    results: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda m=model: results.append(m.ask([question()] * 4, lambda i, t: None, lambda: False))
        )
        for model in models
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[REPLY] * 4] * len(models)
    assert server.most_at_once == most
    assert models[0].max_batch == limits[0]


def test_a_batch_keeps_its_order_and_is_heard_one_at_a_time(start: Start) -> None:
    def echo(exchange: Exchange) -> None:
        said = exchange.json["messages"][0]["content"]
        exchange.events(*json.dumps({"said": said, "count": int(said)}))

    hearing = threading.Lock()
    heard = [""] * 8

    def on_text(index: int, text: str) -> None:
        assert hearing.acquire(blocking=False)
        heard[index] += text
        hearing.release()

    model = model_of(start(echo), concurrency=4)
    texts = model.ask([question(str(n)) for n in range(8)], on_text, lambda: False)
    assert [json.loads(text)["count"] for text in texts] == list(range(8))
    assert heard == texts
    assert model.ask([], on_text, lambda: False) == []


def test_one_failure_ends_its_batch_at_once(start: Start) -> None:
    def one_bad(exchange: Exchange) -> None:
        if exchange.json["messages"][0]["content"] == "1":
            exchange.whole('{"error": "context too long"}', "400 Bad Request")
        else:
            exchange.wait()

    server = start(one_bad)
    model = model_of(server, concurrency=3)
    with pytest.raises(CompassError, match="context too long"):
        model.ask([question(str(n)) for n in range(3)], lambda i, t: None, lambda: False)
    assert eventually(lambda: server.at_once == 0)


def test_what_a_listener_raises_comes_out(start: Start) -> None:
    def on_text(index: int, text: str) -> None:
        raise ZeroDivisionError(index, text)

    server = start(good)
    for batch in (1, 2):
        with pytest.raises(ZeroDivisionError):
            model_of(server, concurrency=2).ask([question()] * batch, on_text, lambda: False)


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


def test_a_key_is_sent_and_never_told(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(
        good, lambda e: e.whole(f'{{"error": "Wrong key {e.headers["authorization"]}"}}', "401 Unauthorized")
    )
    endpoint = Endpoint(server.url, "stub", api_key_env="COMPASS_TEST_KEY")
    monkeypatch.delenv("COMPASS_TEST_KEY", raising=False)
    with pytest.raises(EnvironmentFault, match="COMPASS_TEST_KEY, which is not set"):
        OpenAiModel(endpoint)
    assert "COMPASS_TEST_KEY, which is not set" in probe(endpoint).trouble
    server.other["/v1/models"] = lambda e: e.whole(e.headers["authorization"], "401 Unauthorized")
    monkeypatch.setenv("COMPASS_TEST_KEY", "two\nlines")
    with pytest.raises(EnvironmentFault, match="printable ASCII"):
        OpenAiModel(endpoint)
    monkeypatch.setenv("COMPASS_TEST_KEY", "sk-secret")
    model = OpenAiModel(endpoint)
    assert asked(model) == REPLY
    assert server.chats[0].headers["authorization"] == "Bearer sk-secret"
    with pytest.raises(CompassError, match=r"Wrong key Bearer \*\*\*") as caught:
        asked(model)
    assert "said: Bearer ***. (Its key" in probe(endpoint).trouble
    assert "secret" not in f"{caught.value} {endpoint} {model.name} {model} {probe(endpoint)}"


@pytest.mark.parametrize(
    ("path", "behave", "said"),
    [
        ("/v1/models", lambda e: e.whole("[]"), "was to list its models, and this came instead: []."),
        ("/v1/models", lambda e: e.whole("<html>", kind="text/html"), "a page of HTML."),
        ("/v1/models", lambda e: e.whole("no", "403 Forbidden"), "answered 403 Forbidden and said: no."),
        ("/v1/models", lambda e: e.whole('{"data": [{"id": "other"}]}'), "'stub', and it serves: other."),
        ("/v1/models", lambda e: e.whole('{"data": []}'), "it serves: none."),
        ("/v1/models", never_a_byte, "was to answer within 0.3 s"),
        (
            "/health",
            lambda e: e.whole('{"error": {"message": "Loading model"}}', "503 Busy"),
            "not ready: Loading model.",
        ),
        ("/health", lambda e: e.whole("", "404 Not Found"), ""),
    ],
)
def test_probe(start: Start, path: str, behave: Behaviour, said: str) -> None:
    server = start(good)
    endpoint = Endpoint(server.url, "stub", deadline_s=0.3 if behave is never_a_byte else HOUR)
    assert probe(endpoint).ok
    assert probe(endpoint).models == ("stub",)
    assert probe(endpoint).health == "ok"
    server.other[path] = behave
    found = probe(endpoint)
    assert found.ok == (not said)
    assert said in found.trouble


INTERRUPTED = """
import sys
from compass_edge.engines.openai import Endpoint, OpenAiModel
from compass_edge.models import Question
model = OpenAiModel(Endpoint(sys.argv[1], "stub", concurrency=2, deadline_s=3600))
model.ask([Question(("?",), {"type": "object"})] * int(sys.argv[2]), lambda i, t: None, lambda: False)
"""


@pytest.mark.parametrize("batch", [1, 2])
def test_ctrl_c(start: Start, batch: int) -> None:
    server = start(never_a_byte)
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, server.url, str(batch)],
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    with child:
        assert eventually(lambda: len(server.chats) == batch)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=60)[1].decode()
    assert "KeyboardInterrupt" in said
    assert eventually(lambda: server.at_once == 0)
