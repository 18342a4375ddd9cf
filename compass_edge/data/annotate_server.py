"""The annotation tool's server: one page, frames by their numbers, and a place to save. On the loopback, for one person.

Everything is below a random token, so that no other page or user of the machine finds it; the Host header must be ours, so
that no other name can be made to point here.
"""

from __future__ import annotations

import hmac
import json
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from compass_edge.data.annotation import Annotation
from compass_edge.data.frame_bank import FrameBank
from compass_edge.errors import CompassError, EnvironmentFault

_PAGE = Path(__file__).with_name("annotate_page.html")
_LONGEST = 4 << 20  # bytes of an annotation
_POLICY = "default-src 'none'; img-src 'self' data:; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class AnnotateServer(ThreadingHTTPServer):
    """`serve_forever()` until `shutdown()`. `url` is what a person opens."""

    daemon_threads = True

    def __init__(self, annotation: Annotation, port: int = 0) -> None:
        self.annotation = annotation
        self.bank = FrameBank(annotation.film)
        self.token = secrets.token_urlsafe(16)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise EnvironmentFault(
                f"Port {port} cannot be used: {error.strerror}. Choose another, or 0 for any."
            ) from error

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def handle_error(self, *_: Any) -> None:
        """A browser that turns away in the middle of a frame is no fault; what is one gets its line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"compass-edge: a request failed: {type(error).__name__}: {error}", file=sys.stderr)

    def server_close(self) -> None:
        super().server_close()
        self.bank.close()


class _Handler(BaseHTTPRequestHandler):
    server: AnnotateServer
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        if (rest := self._allowed()) is None:
            return
        if rest == "":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", _PAGE.read_bytes())
        elif rest == "state":
            self._json(HTTPStatus.OK, self._state())
        elif rest.startswith("frame/") and rest[6:].isdigit() and len(rest) < 16:
            self._frame(int(rest[6:]))
        else:
            self._json(HTTPStatus.NOT_FOUND, {"error": "There is nothing here."})

    def do_POST(self) -> None:
        rest = self._allowed()
        if rest is None:
            return
        length = self.headers.get("Content-Length", "")
        if rest != "save" or not length.isdigit() or int(length) > _LONGEST:
            self.close_connection = True  # its body was not read
            self._json(HTTPStatus.BAD_REQUEST, {"error": f"An annotation of at most {_LONGEST >> 20} MiB is expected."})
            return
        try:
            self.server.annotation.edit(json.loads(self.rfile.read(int(length))))
        except (CompassError, ValueError, RecursionError) as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except OSError as error:
            out = self.server.annotation.out
            self._json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"'{out}' cannot be written: {error.strerror}."})
        else:
            self._json(HTTPStatus.OK, {"saved": str(self.server.annotation.out)})

    def _allowed(self) -> str | None:
        """What comes after the token; None when it was refused."""
        origin = self.headers.get("Origin")
        strange = self.headers.get("Host") not in self.server.hosts
        strange |= origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]
        _, _, path = self.path.partition("/")
        token, slash, rest = path.partition("/")
        known = bool(slash) and hmac.compare_digest(token.encode(), self.server.token.encode())
        if not strange and known:
            return rest.partition("?")[0]
        self.close_connection = True
        self._json(
            HTTPStatus.FORBIDDEN, {"error": "Open the address that the terminal shows, with all of its letters."}
        )
        return None

    def _state(self) -> dict[str, Any]:
        annotation = self.server.annotation
        width, height = annotation.film.size
        about = {"name": annotation.film.path.name, "out": str(annotation.out), "width": width, "height": height}
        fields = {key: annotation.fields.get(key) for key in ("instruction", "task", "steps", "frames", "fps")}
        return {**about, **fields, "resumed": annotation.resumed}

    def _frame(self, number: int) -> None:
        try:
            data = self.server.bank.jpeg(number)
        except CompassError as error:
            self._json(HTTPStatus.NOT_FOUND, {"error": str(error)})
        else:
            self._send(HTTPStatus.OK, "image/jpeg", data, "private, max-age=86400")

    def _json(self, status: HTTPStatus, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: HTTPStatus, kind: str, data: bytes, cache: str = "no-store") -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Cache-Control": cache,
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """The terminal belongs to whoever annotates."""
