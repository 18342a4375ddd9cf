"""What the tests of the frame path share: both backends, the goldens, a sender on the loopback."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import settings

from compass_edge.errors import EnvironmentFault
from compass_edge.frames.source import Source, backends, open_source

GOLDENS = Path(__file__).parents[1] / "goldens"
VIDEOS = Path(__file__).parents[3] / "shared" / "videos"

settings.register_profile("patient", settings.default, deadline=None)  # a busy machine is no failure
settings.load_profile("patient")


def pytest_configure() -> None:
    """Who is started in the background begins with Ctrl-C ignored, and so would all that the tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with _operators():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    with _operators():
        return (yield)


@contextlib.contextmanager
def _operators() -> Iterator[None]:
    """Python 3.10 has no ONNX Runtime that knows the operators of the hybrid models. Elsewhere, and in CI, it must."""
    try:
        yield
    except EnvironmentFault as fault:
        if "lacks an operator" not in str(fault) or "CI" in os.environ or sys.version_info >= (3, 11):
            raise
        pytest.skip(f"ONNX Runtime {version('onnxruntime')} has no operators for the hybrid models")


@pytest.fixture(params=["ffmpeg", "pyav"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param not in backends():
        pytest.skip(f"the {request.param} backend is not built in here")
    return str(request.param)


@pytest.fixture(scope="session")
def graphics() -> None:
    """The simulator can draw here. In CI it must."""
    from compass_edge.sim.gl import choose_gl

    try:
        choose_gl()
    except EnvironmentFault as fault:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(fault))


@pytest.fixture
def golden() -> Callable[[str], str]:
    return lambda name: str(GOLDENS / name)


@pytest.fixture
def opened(backend: str) -> Iterator[Callable[..., Source]]:
    """open_source with the backend under test; everything it opened is closed afterwards."""
    sources: list[Source] = []

    def open_it(url: str | Path, **options: object) -> Source:
        source = open_source(str(url), backend=backend, **options)  # type: ignore[arg-type]
        sources.append(source)
        return source

    yield open_it
    for source in sources:
        source.close()
    gc.collect()


class Sender:
    """A camera on the loopback: who connects is sent `payload` and `stay_s` of silence, then the connection closes."""

    def __init__(self, payload: bytes, stay_s: float) -> None:
        self.payload, self.stay_s, self.served = payload, stay_s, 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.02)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                peer, _ = self._socket.accept()
            except TimeoutError:
                continue
            self.served += 1
            with peer:
                try:
                    peer.sendall(self.payload)
                    peer.settimeout(0.02)
                    until = time.monotonic() + self.stay_s
                    while not self._stopping.is_set() and time.monotonic() < until and self._connected(peer):
                        pass
                except OSError:
                    pass

    @staticmethod
    def _connected(peer: socket.socket) -> bool:
        try:
            return peer.recv(1) != b""
        except TimeoutError:
            return True


@pytest.fixture
def sender() -> Iterator[Callable[..., Sender]]:
    senders: list[Sender] = []

    def start(payload: bytes | None = None, stay_s: float = 1000.0) -> Sender:
        data = (GOLDENS / "h264.ts").read_bytes() if payload is None else payload
        senders.append(Sender(data, stay_s))
        return senders[-1]

    yield start
    for sender in senders:
        sender.close()


def eventually(condition: Callable[[], bool], patience_s: float = 60.0) -> bool:
    """True as soon as the condition holds. The bound is generous: the machine may be busy."""
    until = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
