"""A look at a server before it is relied on: is it up, and does it serve the model?"""

from __future__ import annotations

import json
from dataclasses import dataclass

from compass_edge.engines.openai.connection import body_of, request
from compass_edge.engines.openai.endpoint import Endpoint
from compass_edge.engines.openai.exchange import MAX_WHOLE, failed
from compass_edge.engines.openai.faults import server_words
from compass_edge.engines.openai.patience import Patience
from compass_edge.errors import CompassError

_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True)
class Probe:
    """`trouble` is the sentence that says what is wrong, and empty if the model can be asked."""

    models: tuple[str, ...] = ()
    health: str = "unknown"  # "ok", "unknown" where there is no such page, or what the server said
    trouble: str = ""

    @property
    def ok(self) -> bool:
        return not self.trouble


def probe(endpoint: Endpoint) -> Probe:
    """Asks for /models, and for /health beside the version. Never raises for what a server does."""
    try:
        endpoint.api_key()
    except CompassError as error:
        return Probe(trouble=str(error))
    try:
        health = _health(endpoint)
        if health not in ("ok", "unknown"):
            return Probe(health=health, trouble=endpoint.sentence(f"says that it is not ready: {health}"))
        models = _models(endpoint)
    except CompassError as error:
        return Probe(trouble=endpoint.sentence(str(error)))
    if endpoint.model not in models:
        served = ", ".join(models) or "none"
        said = f"was to serve the model {endpoint.model!r}, and it serves: {served}."
        return Probe(models, health, endpoint.sentence(said))
    return Probe(models, health)


def _patience(endpoint: Endpoint) -> Patience:
    return Patience(min(endpoint.deadline_s, _DEADLINE_S), lambda: False)


def _health(endpoint: Endpoint) -> str:
    path = endpoint.parts.path.removesuffix("/v1") + "/health"
    with request(endpoint, "GET", path, _patience(endpoint)) as response:
        if response.status == 200:
            return "ok"
        if response.status < 500:
            return "unknown"
        return server_words(b"".join(body_of(response, MAX_WHOLE)))


def _models(endpoint: Endpoint) -> tuple[str, ...]:
    with request(endpoint, "GET", f"{endpoint.parts.path}/models", _patience(endpoint)) as response:
        if response.status != 200:
            raise failed(response)
        body = b"".join(body_of(response, MAX_WHOLE))
    try:
        return tuple(str(model["id"]) for model in json.loads(body)["data"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise CompassError(f"was to list its models, and this came instead: {server_words(body)}") from None
