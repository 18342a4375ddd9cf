"""A server that speaks the OpenAI protocol, and does with each request whatever the test says: raw sockets, no manners."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

SSE = "text/event-stream"


def chunk(text: str | None = None, finish: str | None = None, **delta: Any) -> str:
    content = {} if text is None else {"content": text}
    return json.dumps({"choices": [{"index": 0, "delta": {**content, **delta}, "finish_reason": finish}]})


def stream(*texts: str, finish: str | None = "stop", done: bool = True) -> bytes:
    """The bytes of a whole stream of events."""
    events = [chunk("", role="assistant"), *(chunk(text) for text in texts)]
    events += [chunk(finish=finish)] if finish else []
    events += ["[DONE]"] if done else []
    return "".join(f"data: {event}\n\n" for event in events).encode()


@dataclass
class Exchange:
    """One request, and the connection to answer it on."""

    server: StubServer
    peer: socket.socket
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    gone: threading.Event = field(default_factory=threading.Event)  # the client closed the connection

    counted: bool = False

    def over(self) -> None:
        """Does not count any more: said before the last byte, behind which the client may ask again at once."""
        with self.server._lock:
            self.server.at_once -= self.counted
            self.counted = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def raw(self, data: bytes) -> None:
        self.peer.sendall(data)

    def head(self, status: str = "200 OK", kind: str = SSE, **headers: str) -> None:
        lines = [
            f"HTTP/1.1 {status}",
            f"Content-Type: {kind}",
            *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
        ]
        self.raw(("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode())

    def whole(self, body: bytes | str, status: str = "200 OK", kind: str = "application/json", **headers: str) -> None:
        data = body if isinstance(body, bytes) else body.encode()
        self.head(status, kind, Content_Length=str(len(data)), **headers)
        self.over()
        self.raw(data)

    def events(self, *texts: str, **options: Any) -> None:
        self.head()
        self.over()
        self.raw(stream(*texts, **options))

    def chunked(self, pieces: Iterable[bytes], *, end: bool = True) -> None:
        self.head(Transfer_Encoding="chunked")
        for piece in pieces:
            self.raw(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if end:
            self.raw(b"0\r\n\r\n")

    def wait(self, seconds: float = 60.0) -> bool:
        """Says nothing until the client has gone. True if it went."""
        self.peer.settimeout(0.01)
        for _ in range(int(seconds / 0.01)):
            if self.server.stopping.is_set():
                return False
            try:
                if not self.peer.recv(4096):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            return False
        self.gone.set()
        return True

    def reset(self) -> None:
        """A connection that is reset rather than closed."""
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.peer.close()


Behaviour = Callable[[Exchange], None]


class StubServer:
    """Each chat request gets the next behaviour; the last one stays. Everything else is answered in order."""

    def __init__(
        self, *behaviours: Behaviour, models: tuple[str, ...] = ("stub",), tls: ssl.SSLContext | None = None
    ) -> None:
        self.behaviours, self.models, self._tls = list(behaviours), models, tls
        self.chats: list[Exchange] = []
        self.at_once = self.most_at_once = 0
        self.stopping = threading.Event()
        self.other: dict[str, Behaviour] = {}
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._socket.settimeout(0.02)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        self.stopping.set()
        self._accepting.join()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                peer, _ = self._socket.accept()
            except TimeoutError:
                continue
            peer.settimeout(10)
            thread = threading.Thread(target=self._serve, args=(peer,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError, ValueError):
            if self._tls is not None:
                self._secured(peer, self._tls)
                return
            self._answer(peer)

    def _secured(self, peer: socket.socket, tls: ssl.SSLContext) -> None:
        with tls.wrap_socket(peer, server_side=True) as secured:
            self._answer(secured)

    def _answer(self, peer: socket.socket) -> None:
        exchange = self._request(peer)
        if exchange is None:
            return
        if exchange.path != "/v1/chat/completions":
            self.other.get(exchange.path, self._listing)(exchange)
            return
        with self._lock:
            behave = self.behaviours[min(len(self.chats), len(self.behaviours) - 1)]
            self.chats.append(exchange)
            self.at_once += 1
            exchange.counted = True
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            behave(exchange)
        finally:
            exchange.over()

    def _request(self, peer: socket.socket) -> Exchange | None:
        with peer.makefile("rb") as incoming:
            first = incoming.readline().decode().split()
            if len(first) < 2:
                return None
            headers: dict[str, str] = {}
            while (line := incoming.readline().decode().strip()) != "":
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = incoming.read(int(headers.get("content-length", "0")))
        return Exchange(self, peer, first[0], first[1], headers, body)

    def _listing(self, exchange: Exchange) -> None:
        if exchange.path == "/v1/models":
            exchange.whole(json.dumps({"data": [{"id": name} for name in self.models]}))
        elif exchange.path == "/health":
            exchange.whole('{"status": "ok"}')
        else:
            exchange.whole('{"detail": "Not Found"}', "404 Not Found")
