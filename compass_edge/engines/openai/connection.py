"""One HTTP request on a connection of its own, whose every wait can be cut short.

http.client speaks the protocol; the socket under it waits in slices. Proxies and redirections are not followed: frames go
where the URL says, or nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import os
import select
import socket
import ssl
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from compass_edge.engines.openai.endpoint import Endpoint
from compass_edge.engines.openai.faults import Final, Passing
from compass_edge.engines.openai.patience import POLL_S, Patience
from compass_edge.errors import CompassError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE = 1 << 16


@contextlib.contextmanager
def request(
    endpoint: Endpoint, method: str, path: str, patience: Patience, body: bytes | None = None
) -> Iterator[http.client.HTTPResponse]:
    """The response up to its headers; its body is read inside. The socket is closed at the end, however it comes."""
    key = endpoint.api_key()
    headers = {"Accept": "text/event-stream, application/json", "Connection": "close", "User-Agent": "compass-edge"}
    headers |= {"Content-Type": "application/json"} if body is not None else {}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    patience.doing = "connecting"
    try:
        with contextlib.closing(_connected(endpoint, patience)) as sock:
            connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
            connection.sock = _PatientSocket(sock, patience)
            patience.doing = "sending the question"
            # A server that refuses the question before it has read it closes early, and may still have said why.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, headers)
            patience.doing = "waiting for the first byte"
            response = connection.getresponse()
            patience.doing = "reading the reply"
            with contextlib.closing(response):
                yield response
    except (OSError, http.client.HTTPException) as error:
        raise _fault(error) from error


def body_of(response: http.client.HTTPResponse, limit: int) -> Iterator[bytes]:
    """The body as it comes. One that was cut short, or is longer than the limit, is a fault."""
    total = 0
    while chunk := response.read1(_PIECE):
        total += len(chunk)
        if total > limit:
            raise Final(f"sent more than {limit} bytes, and no reply is so long.")
        yield chunk
    if response.length:
        raise Passing(f"closed the connection {response.length} bytes before the end of its reply.")


def _fault(error: OSError | http.client.HTTPException) -> CompassError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Final(f"could not be trusted: {error.verify_message}.")
    if isinstance(error, http.client.RemoteDisconnected):
        return Passing("closed the connection without an answer.")
    if isinstance(error, http.client.IncompleteRead):
        return Passing("closed the connection in the middle of its reply.")
    if isinstance(error, http.client.HTTPException):
        return Final(f"does not speak HTTP as expected: {type(error).__name__} {str(error)[:80]!r}.")
    if isinstance(error, ConnectionRefusedError):
        return Passing("refused the connection. Is it running?")
    if isinstance(error, ssl.SSLError):
        return Passing(f"failed at TLS: {error.reason or error}.")
    return Passing(f"could not be reached, or broke off: {error.strerror or error}.")


def _connected(endpoint: Endpoint, patience: Patience) -> socket.socket:
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise Passing(f"has a name that could not be resolved: {error}.") from error
    until = time.monotonic() + endpoint.connect_timeout_s
    failed: OSError = OSError("there is no address")
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            _connect(sock, address, until, patience)
            sock.settimeout(POLL_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _secured(sock, endpoint, until, patience) if endpoint.tls else sock
        except (ssl.SSLError, OSError) as error:
            sock.close()
            failed = error
        except BaseException:
            sock.close()
            raise
    raise failed


def _connect(sock: socket.socket, address: Any, until: float, patience: Patience) -> None:
    sock.setblocking(False)
    code = sock.connect_ex(address)
    if code == errno.EINPROGRESS:
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        while not poll.poll(1000 * patience.look()):
            _check_time(until)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


def _secured(sock: socket.socket, endpoint: Endpoint, until: float, patience: Patience) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    secured = context.wrap_socket(sock, server_hostname=endpoint.host, do_handshake_on_connect=False)
    while True:
        try:
            secured.do_handshake()
            return secured
        except TimeoutError:
            patience.look()
            _check_time(until)
        except BaseException:
            secured.close()
            raise


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError(errno.ETIMEDOUT, "no connection within the connect timeout")


class _Incoming(io.RawIOBase):
    def __init__(self, sock: socket.socket, patience: Patience) -> None:
        self._sock, self._patience = sock, patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while True:
            self._patience.look()
            try:
                return self._sock.recv_into(buffer)
            except TimeoutError:
                continue


class _PatientSocket:
    """As much of a socket as http.client uses. Whoever opened the real one closes it."""

    def __init__(self, sock: socket.socket, patience: Patience) -> None:
        self._sock, self._patience = sock, patience

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Incoming(self._sock, self._patience), _PIECE)

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._patience.look()
            with contextlib.suppress(TimeoutError):
                view = view[self._sock.send(view[:_PIECE]) :]

    def close(self) -> None:
        """http.client closes as soon as it has the headers, and reads the body afterwards."""
