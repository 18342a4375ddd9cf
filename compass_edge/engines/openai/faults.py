"""What can be wrong with a server, sorted by whether asking again may help."""

from __future__ import annotations

import json
import math
import time
from email.utils import parsedate_to_datetime

from compass_edge.errors import CompassError

_SHOWN = 300  # characters of what a server says
# Too many requests, too slow a request, and the server's own faults; what it has not implemented it will not have next time.
_PASSING = {408, 429, 500, 502, 503, 504, 507, 520, 522, 524, 529}


class Final(CompassError):
    """Asking again would end in the same way."""


class Passing(CompassError):
    """Asking again may help: the connection broke, or the server is overloaded, loading or restarting."""

    def __init__(self, said: str, retry_after_s: float = 0.0) -> None:
        super().__init__(said)
        self.retry_after_s = retry_after_s


def of_status(status: int, reason: str, body: bytes, retry_after: str | None) -> CompassError:
    """A reply that is no success."""
    said = f"answered {status} {reason}".rstrip() + f" and said: {server_words(body)}"
    if status in _PASSING:
        return Passing(said, _seconds(retry_after))
    if status in (401, 403):
        said += " (Its key is read from the environment variable that api_key_env names.)"
    elif status == 404:
        said += " (Is the URL complete, usually with /v1 at its end, and the model's name one that it serves?)"
    elif 300 <= status < 400:
        said += " (Redirections are not followed: give the URL that it leads to.)"
    return Final(said)


def of_error_object(error: object) -> CompassError:
    """An error in the middle of a reply that began as a success."""
    code = error.get("code") if isinstance(error, dict) else None
    said = f"broke its reply off with an error and said: {_words(error)}"
    final = isinstance(code, int) and 400 <= code < 500 and code not in _PASSING
    return Final(said) if final else Passing(said)


def server_words(body: bytes) -> str:
    """What a server says of its own error, in one line."""
    text = body.decode("utf-8", "replace").strip()
    if text[:200].lower().lstrip().startswith(("<!doctype", "<html")):
        return "a page of HTML."
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, dict):
        value = next((value[name] for name in ("error", "detail", "message") if value.get(name)), value)
    return _words(value)


def _words(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        value = value["message"]
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not text:
        return "nothing."
    if len(text) > _SHOWN:
        return text[:_SHOWN] + "..."
    return text if text.endswith((".", "!", "?")) else text + "."


def _seconds(retry_after: str | None) -> float:
    """The header has seconds or a date; one that is neither says nothing."""
    if not retry_after:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0
