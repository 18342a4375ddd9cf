"""What the tests of the client share: a question and its reply, a model of a stub server, how it is asked and refused.

No test measures time: what must not wait is given an hour, and hangs if it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stub_server import Exchange, StubServer

from compass_edge.engines.openai import Endpoint, OpenAiModel
from compass_edge.errors import CompassError
from compass_edge.models import Question
from compass_edge.roles.schema import record, whole, words

SCHEMA = record(said=words(40), count=whole(0, 99))
REPLY = '{"said": "häkchen ✓ 🙂", "count": 3}'
HOUR = 3600.0
BLANKS = " \n" * 500

Start = Callable[..., StubServer]


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


def never_a_byte(exchange: Exchange) -> None:
    exchange.wait()
