"""Sources on their own thread, and live ones: they stall, break, come back and are stopped at any moment."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GOLDENS, eventually

from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.clip import read_number
from compass_edge.frames.source import Source

Open = Callable[..., Source]
Golden = Callable[[str], str]


def test_a_thread_plays_a_file_to_its_end(opened: Open, golden: Golden) -> None:
    source = opened(golden("h264.mp4"), history=64)
    assert source.latest() is None
    source.start()
    for call in (source.step, lambda: source.seek(0), source.start):
        with pytest.raises(UsageError):
            call()
    assert eventually(lambda: source.state == "ended")
    source.stop()
    source.stop()
    frame = source.latest()
    assert frame is not None
    assert read_number(frame.rgb()) == 59
    assert source.stats.frames == 60
    source.seek(1.0)
    frame = source.step()
    assert frame is not None
    assert read_number(frame.rgb()) == 30


def test_stop_without_start_is_harmless(opened: Open, golden: Golden) -> None:
    source = opened(golden("h264.mp4"))
    source.stop()
    assert source.step() is not None
    source.stop()
    assert source.step() is not None


def test_realtime_keeps_the_pace(opened: Open, golden: Golden) -> None:
    source = opened(golden("variable.mkv"), realtime=True)
    begin = time.monotonic()
    source.start()
    assert eventually(lambda: source.state == "ended")
    assert time.monotonic() - begin > 0.8  # the clip lasts 0.9 s


@pytest.mark.parametrize("realtime", [False, True])
def test_a_file_stopped_at_any_moment_loses_nothing(opened: Open, golden: Golden, realtime: bool) -> None:
    chance = random.Random(4)
    for _ in range(5):
        source = opened(golden("h264.mp4"), history=64, realtime=realtime)
        for _ in range(6):
            source.start()
            time.sleep(chance.random() * 0.004)
            source.stop()
        rest = list(range(60))[source.stats.frames :]
        assert [read_number(frame.rgb()) for frame in source] == rest
        assert source.stats.frames == 60
        assert source.ring.stats["gaps"] == 0


def test_two_threads_at_once_are_refused(opened: Open, golden: Golden) -> None:
    source = opened(golden("h264.mp4"))
    outcomes: list[str] = []

    def step() -> None:
        for n in range(60):
            try:
                if n % 7 == 0:
                    source.seek(0.5)
                source._feed.step()
                outcomes.append("stepped")
            except UsageError:
                outcomes.append("refused")
            if n % 13 == 0:
                source.stop()

    threads = [threading.Thread(target=step) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 240
    assert "stepped" in outcomes


def test_a_silent_sender_stalls_and_is_opened_again(opened: Open, sender: Callable[..., object]) -> None:
    camera = sender()
    source = opened(camera.url, timeout_s=0.5, max_backoff_s=0.1)  # type: ignore[attr-defined]
    assert source.info.live
    with pytest.raises(UsageError, match="is live"):
        source.seek(0)
    numbers = []
    with pytest.raises(CompassError, match="Nothing came from"):
        while (frame := source.step()) is not None:
            numbers.append(read_number(frame.rgb()))
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 50
    assert source.state == "stalled"
    assert source.stats.stalls == 1

    def next_frame() -> bool:
        try:
            return source.step() is not None
        except CompassError:
            return False

    assert eventually(next_frame)
    frame = source.latest()
    assert frame is not None
    assert frame.gap_before
    assert source.stats.reconnects >= 1
    assert source.step() is not None
    assert not source.latest().gap_before  # type: ignore[union-attr]


def test_a_sender_that_hangs_up_is_opened_again(opened: Open, sender: Callable[..., object]) -> None:
    camera = sender(stay_s=0.05)
    source = opened(camera.url, timeout_s=5, max_backoff_s=0.2)  # type: ignore[attr-defined]
    source.start()
    assert eventually(lambda: source.stats.reconnects >= 2)
    assert eventually(lambda: source.ring.stats["gaps"] >= 1)
    camera.close()  # type: ignore[attr-defined]
    assert eventually(lambda: "No stream could be opened" in source.failure)
    assert source.state == "stalled"
    source.stop()


def test_without_reconnect_a_broken_sender_is_a_failure(opened: Open, sender: Callable[..., object]) -> None:
    camera = sender(stay_s=0.05)
    source = opened(camera.url, timeout_s=5, reconnect=False)  # type: ignore[attr-defined]
    source.start()
    assert eventually(lambda: source.state == "failed")
    assert "broke off" in source.failure
    source.stop()
    assert camera.served == 1  # type: ignore[attr-defined]


def test_a_realtime_thread_outlives_a_stall(opened: Open, sender: Callable[..., object]) -> None:
    camera = sender(stay_s=0.02)
    source = opened(camera.url, timeout_s=1, max_backoff_s=0.05, realtime=True)  # type: ignore[attr-defined]
    source.start()
    assert eventually(lambda: source.stats.reconnects >= 1)
    before = source.stats.frames
    assert eventually(lambda: source.stats.frames > before)
    source.stop()


def test_a_sender_that_never_sends_is_reported_in_time(opened: Open, sender: Callable[..., object]) -> None:
    begin = time.monotonic()
    with pytest.raises(CompassError, match=r"did not answer within 0\.3"):
        opened(sender(b"").url, timeout_s=0.3)  # type: ignore[attr-defined]
    with pytest.raises(CompassError, match=r"did not answer within 0\.3|No stream could be opened"):
        opened(sender(b"x" * 5000).url, timeout_s=0.3)  # type: ignore[attr-defined]
    with pytest.raises(CompassError, match="No stream could be opened"):
        opened(sender(b"", stay_s=0).url, timeout_s=2)  # type: ignore[attr-defined]
    assert time.monotonic() - begin < 60


def test_stop_and_start_again_on_a_live_source(opened: Open, sender: Callable[..., object]) -> None:
    camera = sender()
    source = opened(camera.url, timeout_s=1.5, max_backoff_s=0.1)  # type: ignore[attr-defined]
    for round_ in (1, 2, 3):
        before = source.stats.frames
        source.start()
        assert eventually(lambda before=before: source.stats.frames >= before + 40)  # type: ignore[misc]
        source.stop()
        assert camera.served >= round_  # type: ignore[attr-defined]
    assert source.ring.stats["gaps"] >= 2
    assert "No stream" not in source.failure


PUBLISH = """
import sys, time, av
from fractions import Fraction
from compass_edge.frames.clip import clip_frame
for _ in range(100):  # until somebody listens
    try:
        with av.open(sys.argv[1], "w", format="rtsp", options={"rtsp_transport": "tcp"}) as container:
            stream = container.add_stream("libx264", rate=30, options={"tune": "zerolatency", "g": "10"})
            stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
            for number in range(2000):
                frame = av.VideoFrame.from_ndarray(clip_frame(number, 128, 96), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, 30)
                container.mux(stream.encode(frame))
                time.sleep(0.01)
    except (OSError, ValueError):
        time.sleep(0.1)
"""


def test_rtsp(opened: Open) -> None:
    import av

    if "rtsp" not in av.formats_available:
        pytest.skip("PyAV here has no RTSP muxer")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"rtsp://127.0.0.1:{port}/live"
    with subprocess.Popen([sys.executable, "-c", PUBLISH, url], stderr=subprocess.DEVNULL) as camera:
        try:
            # FFmpeg 8 has a bug that makes listening without listen_timeout fail.
            source = opened(
                url, timeout_s=30, options={"rtsp_flags": "listen", "listen_timeout": "30"}, reconnect=False
            )
            numbers = []
            for _ in range(30):
                frame = source.step()
                assert frame is not None
                numbers.append(read_number(frame.rgb()))
            assert numbers == list(range(numbers[0], numbers[0] + 30))
            assert source.info.live
            assert (source.info.codec, source.info.width, source.info.height) == ("h264", 128, 96)
        finally:
            camera.kill()


def test_file_urls_work_too(opened: Open) -> None:
    assert sum(1 for _ in opened(f"file://{Path(GOLDENS / 'h264.mp4')}")) == 60
