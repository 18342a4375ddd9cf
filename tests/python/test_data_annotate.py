"""The annotation tool: exact frames, saved after every change, closed to everybody else."""

from __future__ import annotations

import http.client
import io
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_samples import SIZE, shoot
from PIL import Image

from compass_edge.data.annotate_server import AnnotateServer
from compass_edge.data.annotation import Annotation
from compass_edge.data.folder import read_episode, write_episode_json
from compass_edge.data.frame_bank import FrameBank
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import EnvironmentFault, IntegrityError, UsageError
from compass_edge.frames.clip import read_number, write_clip

STEPS = [{"sentence": "Push.", "end": 9}, {"sentence": "", "end": 20, "completion": "brief"}]


def number_in(jpeg: bytes) -> int:
    return read_number(np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")))


@pytest.fixture(scope="module")
def long_film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return shoot(tmp_path_factory.mktemp("film") / "a.mp4", 150).read_bytes()


@pytest.fixture
def server(tmp_path: Path, long_film: bytes) -> Iterator[AnnotateServer]:
    (tmp_path / "a.mp4").write_bytes(long_film)
    server = AnnotateServer(Annotation(tmp_path / "a.mp4"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(
    server: AnnotateServer, path: str, body: Any = None, *, token: str | None = None, **headers: str
) -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    connection.request(method, f"/{server.token if token is None else token}/{path}", data, headers)
    reply = connection.getresponse()
    found = reply.status, reply.read(), reply.headers
    connection.close()
    return found


def test_the_page_is_complete_in_itself(server: AnnotateServer) -> None:
    status, page, headers = ask(server, "")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"http://" not in page
    assert b"https://" not in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_a_number_is_the_same_frame_however_it_is_reached(server: AnnotateServer) -> None:
    for number in (0, 1, 149, 3, 2, 75, 74, 140, 0, 149):
        status, data, headers = ask(server, f"frame/{number}")
        assert (status, headers["Content-Type"]) == (200, "image/jpeg")
        assert number_in(data) == number
    assert Image.open(io.BytesIO(data)).size == SIZE
    for wrong in ("150", "-1", "x", "1.5", "9" * 30, ""):
        assert ask(server, f"frame/{wrong}")[0] == 404


def test_what_is_marked_is_saved_and_can_be_read(server: AnnotateServer, tmp_path: Path) -> None:
    state = json.loads(ask(server, "state")[1])
    assert (state["frames"], state["fps"], state["steps"], state["resumed"]) == (150, 10.0, None, False)
    assert not (tmp_path / "a.json").exists()
    status, reply, _ = ask(server, "save", {"instruction": "Push it.", "steps": STEPS})
    assert (status, json.loads(reply)) == (200, {"saved": str(tmp_path / "a.json")})
    episode = read_episode(tmp_path / "a.json")
    assert (episode.instruction, episode.frames) == ("Push it.", 150)
    assert [(step.sentence, step.end, step.completion) for step in episode.truth] == [
        ("Push.", 9, "lasting"),
        ("", 20, "brief"),
    ]
    assert server.annotation.unnamed == 1
    assert ask(server, "save", {"steps": None})[0] == 200
    assert read_episode(tmp_path / "a.json").steps is None
    assert ask(server, "save", {"steps": []})[0] == 200
    assert read_episode(tmp_path / "a.json").steps == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 50_000,
        {"steps": [{"sentence": "x", "end": 0}]},
        {"steps": [{"sentence": "x"}]},
        {"instruction": 3},
        {"frames": 9},
        {"video": "/etc/passwd"},
    ],
)
def test_what_could_not_be_read_again_is_not_saved(server: AnnotateServer, tmp_path: Path, body: Any) -> None:
    assert ask(server, "save", {"steps": STEPS})[0] == 200
    before = (tmp_path / "a.json").read_bytes()
    status, reply, _ = ask(server, "save", body)
    assert status == 400
    assert json.loads(reply)["error"]
    assert (tmp_path / "a.json").read_bytes() == before
    assert ask(server, "state")[0] == 200


def test_nobody_else_gets_in(server: AnnotateServer, tmp_path: Path) -> None:
    for token in ("", "x", server.token[:-1], server.token + "x"):
        assert ask(server, "state", token=token)[0] == 403
        assert ask(server, "save", {"steps": STEPS}, token=token)[0] == 403
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"127.0.0.1:{server.port + 1}"):
        assert ask(server, "state", Host=host)[0] == 403
    assert ask(server, "state", Host=f"localhost:{server.port}")[0] == 200
    assert ask(server, "save", {"steps": STEPS}, Origin="http://evil.example")[0] == 403
    assert not (tmp_path / "a.json").exists()
    assert ask(server, "save", {"steps": STEPS}, Origin=f"http://127.0.0.1:{server.port}")[0] == 200
    assert ask(server, "save", b"x", **{"Content-Length": str(1 << 30)})[0] == 400
    assert ask(server, "other")[0] == 404
    assert ask(server, "other", {})[0] == 400
    assert server.server_address[0] == "127.0.0.1"


def test_a_disk_that_is_full_is_told(server: AnnotateServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("compass_edge.data.annotation.write_episode_json", full)
    status, reply, _ = ask(server, "save", {"steps": STEPS})
    assert status == 500
    assert "No space left on device" in json.loads(reply)["error"]


def test_it_goes_on_where_it_was_left(tmp_path: Path) -> None:
    video = shoot(tmp_path / "a.mp4", 30)
    steps = [{"sentence": "Push.", "end": 9, "forms": ["state"], "facts": {"n": 1}}]
    fields = {"id": "x/1", "task": "t", "instruction": "i", "fps": 10, "frames": 25, "crop": [0, 0, 80, 96]}
    more = {"kind": "early_stop", "tracks": {"held": [0] * 25}, "about": {"by": "hand"}}
    write_episode_json(tmp_path / "a.json", {**fields, **more, "steps": steps})
    annotation = Annotation(video)
    assert annotation.resumed
    assert (annotation.steps, annotation.film.size) == (1, (80, 96))
    annotation.edit({"instruction": "j", "steps": [*steps, {"sentence": "Pull.", "end": 20}]})
    raw = json.loads((tmp_path / "a.json").read_text())
    assert raw == {
        "format": "compass-edge-episode/1",
        **fields,
        **more,
        "instruction": "j",
        "steps": [*steps, {"sentence": "Pull.", "end": 20}],
    }


def test_it_saves_where_it_is_told_to(tmp_path: Path) -> None:
    video = shoot(tmp_path / "videos" / "a.mp4", 12)
    (tmp_path / "told").mkdir()
    for out, expected in ((tmp_path / "told", "told/a.json"), (tmp_path / "told" / "b.json", "told/b.json")):
        Annotation(video, out, "Do it.").edit({"steps": [{"sentence": "x", "end": 5}]})
        episode = read_episode(tmp_path / expected, tmp_path)
        assert (episode.instruction, episode.size, episode.film.frames) == ("Do it.", 1, 12)
        assert Annotation(video, out).resumed
    with pytest.raises(UsageError, match=r"must be a folder or end in \.json"):
        Annotation(video, tmp_path / "x.txt")
    with pytest.raises(UsageError, match="There is no file"):
        Annotation(tmp_path / "gone.mp4")
    (tmp_path / "videos" / "a.json").write_text("{}")
    with pytest.raises(IntegrityError, match="the key 'format' is missing"):
        Annotation(video)


def test_frames_without_good_time_stamps_are_counted(tmp_path: Path) -> None:
    film = VideoFilm(shoot(tmp_path / "a.mp4", 100))
    bank = FrameBank(film, max_bytes=10_000)
    uneven = FrameBank(
        VideoFilm(write_clip(tmp_path / "b.mp4", frames=40, width=160, height=96, pts=[n * n for n in range(40)]))
    )
    for number in (90, 3, 88, 0):
        assert number_in(bank.jpeg(number)) == number
    for number in (39, 2, 30, 1):
        assert number_in(uneven.jpeg(number)) == number
    bank._times = [time + 0.25 for time in bank._times]  # what the file says is not where the frames are
    for number in (95, 5, 70):
        assert number_in(bank.jpeg(number)) == number
    bank._times = []
    for number in (95, 5):
        assert number_in(bank.jpeg(number)) == number
    assert len(bank._kept) < 10
    with pytest.raises(UsageError, match="frames 0 to 99, and 100 was asked for"):
        bank.jpeg(100)
    bank.close()
    uneven.close()


def test_a_port_that_is_taken(server: AnnotateServer) -> None:
    with pytest.raises(EnvironmentFault, match=f"Port {server.port} cannot be used"):
        AnnotateServer(server.annotation, server.port)


def test_ctrl_c_ends_it_saved(tmp_path: Path) -> None:
    video = shoot(tmp_path / "a.mp4", 20)
    command = [sys.executable, "-m", "compass_edge.cli.main", "data", "annotate", str(video)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    url = run.stdout.readline().split()[1]
    assert "20 frames; begins" in run.stdout.readline()
    assert run.stdout.readline() == "Ctrl-C ends it.\n"
    host, token = url.removeprefix("http://").strip("/").split("/")
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("POST", f"/{token}/save", json.dumps({"steps": [{"sentence": "", "end": 7}]}))
    assert connection.getresponse().status == 200
    connection.close()
    run.send_signal(signal.SIGINT)
    told, errors = run.communicate(timeout=30)
    assert run.returncode == 0
    assert "with 1 steps, 1 of them without a sentence yet" in told
    assert "Traceback" not in errors
    assert read_episode(tmp_path / "a.json").size == 1
