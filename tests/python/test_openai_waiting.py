"""The client while a server is slow or busy: deadlines, giving up, so many at once, Ctrl-C.

Nothing here waits for a real deadline longer than it must.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually
from openai_samples import HOUR, REPLY, Start, asked, good, model_of, never_a_byte, question, refused
from stub_server import Behaviour, Exchange, chunk, stream

from compass_edge.engines.openai import Endpoint, OpenAiModel
from compass_edge.errors import CompassError

pytest_plugins = ["openai_server"]


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
