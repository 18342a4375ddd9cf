"""The loop through the client: scripted models behind an HTTP server give the same events as in the same process."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import av
import numpy as np
import pytest
from stub_server import Exchange, StubServer, chunk

from compass_edge.engines.openai import Endpoint, OpenAiModel
from compass_edge.loop.call import Models
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Event
from compass_edge.loop.lanes import Limits
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.pool import run_pool
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.loop.virtual_lanes import VirtualLanes
from compass_edge.models import Cancelled, Image, OnText, Question, VisionLanguageModel
from compass_edge.scripted.models import ScriptedLatency, scripted_models
from compass_edge.scripted.scenario import Scenario, load
from compass_edge.scripted.ticks import ScriptedTicks


def drawn(tick: int) -> np.ndarray[Any, Any]:
    """A picture of a tick's number: scripted frames have no other pixels."""
    return np.full((8, 8, 3), [tick % 256, tick // 256, 77], np.uint8)


def seen(url: str) -> int:
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    pixel = av.CodecContext.create("png", "r").decode(av.Packet(data))[0].to_ndarray(format="rgb24")[4, 4]
    return int(pixel[0]) + 256 * int(pixel[1])


@dataclass
class Drawing:
    """The client, with a picture drawn for each scripted frame, under the name of the model behind the server."""

    model: OpenAiModel
    name: str

    @property
    def max_batch(self) -> int:
        return self.model.max_batch

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Sequence[str]:
        shown = [
            replace(
                question,
                parts=tuple(
                    Image(part.digest, drawn(part.pixels)) if isinstance(part, Image) else part
                    for part in question.parts
                ),
            )
            for question in questions
        ]
        return self.model.ask(shown, on_text, cancelled)


def serving(models: dict[str, VisionLanguageModel]) -> StubServer:
    def behave(exchange: Exchange) -> None:
        body = exchange.json
        parts = tuple(
            part["text"] if part["type"] == "text" else Image("", seen(part["image_url"]["url"]))
            for part in body["messages"][0]["content"]
        )
        schema = body["response_format"]["json_schema"]["schema"]
        question, pieces = Question(parts, schema, body["max_tokens"]), list[str]()
        models[body["model"]].ask([question], lambda index, piece: pieces.append(piece), lambda: False)
        exchange.head()
        for at, piece in enumerate(pieces):
            if at + 1 == len(pieces):
                exchange.over()  # the client reads no further than the end of the object
            exchange.raw(f"data: {chunk(piece)}\n\n".encode())
        exchange.raw(f"data: {chunk(finish='stop')}\n\ndata: [DONE]\n\n".encode())

    return StubServer(behave)


def begun(scenario: Scenario, models: Models, events: list[Event]) -> Episode:
    return Episode.begin(
        scenario.world.instruction,
        ScriptedTicks(scenario.world),
        models.names(),
        settings=scenario.settings,
        subscribers=(lambda event, state: events.append(event),),
    )


def untroubled(scenario: Scenario) -> Scenario:
    """Nothing is late or fails here: on threads that takes real time, and so does the rest that a failing model is given."""
    faults = tuple(fault for fault in scenario.world.faults if fault.reply not in ("late", "raise"))
    return replace(scenario, world=replace(scenario.world, faults=faults))


@pytest.mark.parametrize("executor", ["sequential", "overlapped", "pool"])
@pytest.mark.parametrize("name", ["state-recall", "bad-replies", "replan"])
def test_the_same_events_as_in_process(name: str, executor: str) -> None:
    scenario = untroubled(load(name))
    scripted, reference = scripted_models(scenario.world), list[Event]()
    run_sequential(
        begun(scenario, scripted, reference), VirtualLanes(scripted, ScriptedLatency(scenario.latency, scenario.world))
    )
    server = serving({"orienter": scripted.orienter, "verifier": scripted.verifier})
    try:
        clients = {
            role: OpenAiModel(
                Endpoint(
                    server.url, role, concurrency=2, picture_format="png", retries=1, backoff_s=0.001, deadline_s=60.0
                )
            )
            for role in ("orienter", "verifier")
        }
        models = Models(
            Drawing(clients["orienter"], scripted.orienter.name),
            scripted.prm,
            Drawing(clients["verifier"], scripted.verifier.name),
        )
        events: list[Event] = []
        episodes = [begun(scenario, models, events)]
        others: list[list[Event]] = [[], []]
        with ThreadLanes(models, Limits(at_once={"orienter": 2, "prm": 1, "verifier": 2})) as lanes:
            if executor == "sequential":
                run_sequential(episodes[0], lanes)
            elif executor == "overlapped":
                Overlapped(episodes[0], lanes, models).run()
            else:
                episodes += [begun(scenario, models, other) for other in others]
                run_pool(episodes, lanes, models, at_once=3)
                assert all(other == reference for other in others)
    finally:
        server.close()
    assert events == reference
    if not any(
        client.counts.cancelled for client in clients.values()
    ):  # else the server may be at one nobody waits for
        assert server.most_at_once <= 2
    counts = clients["verifier"].counts
    assert counts.asked == counts.replies + counts.failed + counts.cancelled
    assert counts.failed == clients["orienter"].counts.failed == 0
    if name == "bad-replies":
        assert counts.invalid > 0
        assert clients["orienter"].counts.invalid > 0
