"""An endpoint: where a model is served, and how it is to be asked."""

from __future__ import annotations

import ipaddress
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import SplitResult, urlsplit

from compass_edge.engines.picture_url import Format
from compass_edge.errors import EnvironmentFault, UsageError

Dialect: TypeAlias = Literal["json_schema", "vllm", "llama", "none"]
# Understood by vLLM, SGLang, llama-server and TensorRT-LLM, and by every template that can think; ignored by the others.
NO_THINKING: Mapping[str, Any] = MappingProxyType({"chat_template_kwargs": {"enable_thinking": False}})
# What only the request itself may say.
_OURS = {
    *("model", "messages", "stream", "temperature", "seed", "max_tokens", "n"),
    *("response_format", "structured_outputs", "json_schema", "grammar"),
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Checked when it is made.

    `dialect` says how the server is told the schema: `json_schema` is the protocol's own response_format (vLLM, SGLang,
    llama-server, TensorRT-LLM), `vllm` and `llama` are the fields of those two, and `none` writes it into the prompt, for a
    server that knows none of them. Whichever it is, every reply is checked here.

    `concurrency` is 1 unless the server is known to take more: TensorRT Edge-LLM's corrupts its state with two. All models of
    this process on one host and port share it.

    `extra_body` is sent with every request. It switches thinking off; give {} to a server that refuses unknown fields.
    """

    url: str  # up to the version, such as http://127.0.0.1:8080/v1
    model: str
    api_key_env: str = ""  # the name of an environment variable: a key on a command line is seen by everybody
    concurrency: int = 1
    deadline_s: float = 60.0  # for a whole call: its turn, every retry, the last byte
    connect_timeout_s: float = 5.0
    retries: int = 2
    backoff_s: float = 0.5  # before the first retry; doubled for each more
    dialect: Dialect = "json_schema"
    picture_format: Format = "jpeg"  # png sends every pixel as it is
    max_side: int = 1024  # pixels; a larger picture is shrunk, 0 leaves it
    jpeg_quality: int = 90
    extra_body: Mapping[str, Any] = field(default_factory=lambda: NO_THINKING, hash=False)
    allow_remote_http: bool = False

    def __post_init__(self) -> None:
        _check_url(self.url, self.allow_remote_http)
        if not isinstance(self.model, str) or not self.model.strip():
            raise UsageError("An endpoint needs the name of the model that it serves, and an empty one came.")
        for name, least, most in (
            ("concurrency", 1, 1024),
            ("retries", 0, 100),
            ("max_side", 0, 16384),
            ("jpeg_quality", 1, 100),
        ):
            _check_whole(name, getattr(self, name), least, most)
        for name, least_s in (("deadline_s", 0.0), ("connect_timeout_s", 0.0), ("backoff_s", 0.0)):
            _check_seconds(name, getattr(self, name), least_s)
        _check_choice("dialect", self.dialect, get_args(Dialect))
        _check_choice("picture_format", self.picture_format, get_args(Format))
        object.__setattr__(self, "extra_body", _checked_extra(self.extra_body))
        object.__setattr__(self, "url", self.url.rstrip("/"))

    @property
    def name(self) -> str:
        """The server, the model and all that changes what is asked: part of the hash of every call."""
        size = f" to {self.max_side}" if self.max_side else ""
        quality = f" {self.jpeg_quality}" if self.picture_format == "jpeg" else ""
        extra = json.dumps(self.extra_body, sort_keys=True, separators=(",", ":"))
        return f"{self.model} at {self.url} ({self.dialect}, {self.picture_format}{quality}{size}, {extra})"

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def tls(self) -> bool:
        return self.parts.scheme == "https"

    @property
    def host(self) -> str:
        return self.parts.hostname or ""

    @property
    def port(self) -> int:
        return self.parts.port or (443 if self.tls else 80)

    def api_key(self) -> str:
        """Read each time, and kept nowhere."""
        if not self.api_key_env:
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise EnvironmentFault(
                f"The key of {self.url} is read from the environment variable {self.api_key_env}, which is not set. Set it, or "
                "leave api_key_env empty."
            )
        if not key.isascii() or not key.isprintable():
            raise EnvironmentFault(
                f"The key in {self.api_key_env} must be of printable ASCII characters, and others came."
            )
        return key

    def sentence(self, said: str) -> str:
        """With the server's name before it, and without its key, which some servers repeat."""
        key = self.api_key()
        said = said.replace(key, "***").rstrip() if key else said.rstrip()
        return f"The server at {self.url} {said}" + ("" if said.endswith((".", "?", "!", ")")) else ".")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_url(url: str, allow_remote_http: bool) -> None:
    wanted = "An endpoint's URL must look like http://127.0.0.1:8080/v1 or https://host/v1"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(f"{wanted}, and {url!r} came: {error}.") from error
    if parts.scheme not in ("http", "https") or not host or port == 0 or not (url.isascii() and url.isprintable()):
        raise UsageError(f"{wanted}, and {url!r} came.")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{wanted}, and one with a user or a password came. Name a variable in api_key_env instead.")
    if parts.query or parts.fragment or " " in url:
        raise UsageError(f"{wanted}, and one with a query, a fragment or a space came: {url!r}.")
    if parts.scheme == "http" and not is_loopback(host) and not allow_remote_http:
        raise UsageError(
            f"{url!r} would send frames over the network unencrypted. Use https, a server on this computer, or say "
            "allow_remote_http."
        )


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"An endpoint's {name} must be a whole number from {least} to {most}, and {value!r} came.")


def _check_seconds(name: str, value: object, above: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value <= above:
        raise UsageError(f"An endpoint's {name} must be a number of seconds, and {value!r} came.")


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"An endpoint's {name} must be one of {', '.join(known)}, and {value!r} came.")


def _checked_extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that nobody else holds."""
    try:
        copied = json.loads(json.dumps(dict(extra), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UsageError(f"An endpoint's extra_body must be fields with JSON values, and {extra!r} came.") from error
    if taken := sorted(_OURS & copied.keys()):
        raise UsageError(f"An endpoint's extra_body must leave {', '.join(taken)} to the client, and they came in it.")
    return dict(copied)
