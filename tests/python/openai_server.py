"""A fixture that starts stub servers and closes them afterwards. A plugin: a test names it in `pytest_plugins`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai_samples import Start
from stub_server import Behaviour, StubServer


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[StubServer] = []

    def started(*behaviours: Behaviour, **options: Any) -> StubServer:
        servers.append(StubServer(*behaviours, **options))
        return servers[-1]

    yield started
    for server in servers:
        server.close()
