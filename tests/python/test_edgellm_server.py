"""TensorRT Edge-LLM's server under supervision, and its Python API in this process. Both are played; no GPU is here."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from board_samples import no_gpu, rtx
from edgellm_samples import SERVER, free_port, thor_machine
from openai_samples import SCHEMA, question

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import find_board
from compass_edge.boards.probe import probe
from compass_edge.engines.edgellm import in_process
from compass_edge.engines.edgellm.command_line import CommandLine, ServerLimits
from compass_edge.engines.edgellm.launch import Launch, launch_of
from compass_edge.engines.edgellm.readiness import require_payload
from compass_edge.engines.edgellm.server import EdgeLlmServer, Supervision
from compass_edge.engines.edgellm.vlm import EdgeLlmVlm, open_launched, open_served
from compass_edge.errors import CompassError, EnvironmentFault, UsageError
from compass_edge.models import Image, Question
from compass_edge.roles.reply import read

pytestmark = pytest.mark.tensorrt

QUICK = Supervision(look_s=0.02, rest_s=0.02, longest_rest_s=0.05, restarts=3, unhealthy=2, grace_s=0.3)


class Played:
    """Servers that misbehave by words, one for each life; the last one stays."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.servers = folder, list[EdgeLlmServer]()
        (folder / "config.json").write_text("{}")
        (folder / "serve.py").write_text(SERVER)

    def server(self, words: str = "well", rules: Supervision = QUICK) -> EdgeLlmServer:
        launch = Launch(self.folder, "Qwen3.5-9B", free_port(), deadline_s=30.0)
        command = [
            sys.executable,
            str(self.folder / "serve.py"),
            str(launch.port),
            launch.model,
            words,
            str(self.lives),
        ]
        self.servers.append(EdgeLlmServer(launch, rules, words=command))
        return self.servers[-1]

    @property
    def lives(self) -> Path:
        return self.folder / "lives"

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.lives.read_text().splitlines()]


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    made = Played(tmp_path)
    yield made
    for server in made.servers:
        server.stop()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(holds: Callable[[], bool]) -> bool:
    for _ in range(3000):
        if holds():
            return True
        time.sleep(0.01)
    return False


def answer(model: EdgeLlmVlm, cancelled: Callable[[], bool] = lambda: False) -> str:
    return model.ask([question()], lambda index, text: None, cancelled)[0]


# A life


def test_it_is_started_asked_and_stopped(played: Played) -> None:
    server = played.server()
    assert "has not been started" in server.sentence()
    with EdgeLlmVlm(server) as model:
        assert read(answer(model), SCHEMA) == {"said": "count", "count": 3}
        assert (server.state, server.starts, model.max_batch) == ("ready", 1, 1)
        assert "is ready" in server.sentence()
        assert model.name.startswith("Qwen3.5-9B at http://127.0.0.1:")
        (pid,) = played.pids
        assert server.pid == pid
    assert server.state == "stopped"
    assert not alive(pid)
    with pytest.raises(CompassError, match=r"Qwen3\.5-9B at http://.* was stopped\."):
        answer(model)
    server.stop()
    with pytest.raises(CompassError, match=r"was started already"):
        server.start()


def test_one_that_ignores_the_signal_is_ended_all_the_same(played: Played) -> None:
    server = played.server("stubborn")
    server.start()
    server.wait_ready(30)
    server.stop()
    assert not alive(played.pids[0])


def test_one_that_is_killed_is_started_again(played: Played) -> None:
    server = played.server()
    with EdgeLlmVlm(server) as model:
        server.wait_ready(30)
        os.kill(played.pids[0], signal.SIGKILL)
        assert wait_for(lambda: server.starts == 2)
        assert read(answer(model), SCHEMA)["count"] == 3
        assert server.state == "ready"
    assert not any(alive(pid) for pid in played.pids)


def test_one_that_dies_of_a_question_says_so_and_comes_back(played: Played) -> None:
    server = played.server("die,well")
    with EdgeLlmVlm(server) as model:
        text = answer(model)  # tried again by the client, on the second life
        assert read(text, SCHEMA)["count"] == 3
        assert server.starts == 2


def test_one_that_will_not_start_is_given_up_with_its_own_words(played: Played) -> None:
    server = played.server("refuse")
    with EdgeLlmVlm(server) as model:
        with pytest.raises(CompassError) as caught:
            answer(model)
        assert "does not run, and is not started again: it ended with exit code 1." in str(caught.value)
        assert "It said last: TensorRT prerequisite error: No module named 'tensorrt'." in str(caught.value)
        assert "It was tried 4 times in a row." in str(caught.value)
        assert len(played.pids) == 4
    assert server.state == "failed"
    with pytest.raises(CompassError, match=r"is not started again"):
        server.wait_ready()


def test_one_that_runs_and_does_not_answer_is_started_again(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["compass_edge.engines.openai.probe"], "_DEADLINE_S", 0.2)
    server = played.server("mute,well")
    server.start()
    server.wait_ready(30)
    (played.folder / "lives.mute").touch()
    assert wait_for(lambda: server.starts == 2 and server.state == "ready")
    assert not alive(played.pids[0])


def test_a_program_that_is_not_there(played: Played) -> None:
    server = EdgeLlmServer(played.server().launch, QUICK, words=["/nowhere/tensorrt-edgellm-serve"])
    played.servers.append(server)
    server.start()
    with pytest.raises(CompassError, match=r"/nowhere/tensorrt-edgellm-serve could not be started: No such file"):
        server.wait_ready(30)


def test_waiting_ends(played: Played) -> None:
    server = played.server("well", replace(QUICK, look_s=60))
    server.start()
    with pytest.raises(CompassError, match=r"is starting; .* builds engines.*The time to wait for it is over\."):
        server.wait_ready(0.05)
    model = EdgeLlmVlm.__new__(EdgeLlmVlm)
    model.server = server
    assert model.ask([question()], lambda *_: None, lambda: True) == [""]


def test_it_does_not_outlive_a_parent_that_was_killed(played: Played) -> None:
    launch = played.server().launch
    code = (
        "import sys, time\n"
        "from compass_edge.engines.edgellm.child import Child\n"
        "child = Child(sys.argv[1:]); print(child.pid, flush=True); time.sleep(600)"
    )
    words = [sys.executable, str(played.folder / "serve.py"), str(launch.port), "m", "well", str(played.lives)]
    parent = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert wait_for(lambda: played.lives.exists() and played.lives.read_text() != "")
    parent.kill()
    parent.communicate()
    assert wait_for(lambda: not alive(pid))


# Before anything is started


def test_a_port_that_is_taken_and_a_folder_without_a_model(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        launch = Launch(tmp_path, "m", taken.getsockname()[1])
        with pytest.raises(UsageError, match=r"has no config\.json\. Make one with `compass-edge models edgellm"):
            EdgeLlmServer(launch, words=["true"]).start()
        (tmp_path / "config.json").write_text("{}")
        with pytest.raises(EnvironmentFault, match=r"Port \d+ must be free .*choose another port"):
            EdgeLlmServer(launch, words=["true"]).start()
    with pytest.raises(UsageError, match=r"from 1 to 65535, and 0 came"):
        Launch(tmp_path, "m", 0)
    with pytest.raises(UsageError, match=r"fit its context, and 9 of 8 came"):
        Launch(tmp_path, "m", limits=ServerLimits(9, 8))


def test_the_planner_is_asked_first(tmp_path: Path) -> None:
    assert require_payload(thor_machine(tmp_path / "thor")).sm == 110
    nowhere = Launch(tmp_path / "nowhere", "m")
    ada = rtx(tmp_path / "ada", "NVIDIA GeForce RTX 4090", "8.9", 24564)
    for sources, said in (
        (no_gpu(tmp_path / "none"), "an NVIDIA GPU, and none was found"),
        (ada, "vLLM or llama-server"),
    ):
        machine = probe(sources)
        with pytest.raises(EnvironmentFault, match=said):
            open_launched(nowhere, machine)
        with pytest.raises(EnvironmentFault, match=said):
            in_process.InProcessEdgeLlm(nowhere, machine)


def test_a_part_of_an_arrangement_is_launched_as_it_says(tmp_path: Path) -> None:
    part = preset_arrangement(find_board("thor")).part("verifier")
    launch = launch_of(part, tmp_path)
    assert (launch.model, launch.port, launch.mtp) == ("Qwen3.5-9B", 8002, True)
    words = launch.words(CommandLine("0.11.1"))
    assert words[:3] == ["trtedge", "serve", str(tmp_path)]
    assert "--enable-context-reuse" in words
    assert "--speculative-config" in words
    assert launch.endpoint.concurrency == 1
    elsewhere = replace(launch, programs=Path("/opt/edgellm/bin")).words(CommandLine("0.11.0"))
    assert elsewhere[0] == "/opt/edgellm/bin/tensorrt-edgellm-serve"
    with pytest.raises(UsageError, match=r"has no config\.json"):
        open_served(part, tmp_path, thor_machine(tmp_path / "machine"))


# In this process


class FakeStream:
    def __init__(self, texts: list[str]) -> None:
        self._texts, self.closed = iter(texts), False

    def __iter__(self) -> Iterator[Any]:
        for text in self._texts:
            yield types.SimpleNamespace(text=text)

    def close(self) -> None:
        self.closed = True


class FakeApi:
    """`experimental.server` of 0.11, as far as it is used."""

    __file__ = "experimental/server/__init__.py"

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked, self.opened, self.streams = list(texts), list[Any](), {}, list[FakeStream]()
        self.at_once = self.most_at_once = 0
        self.SamplingParams = self.ContextCacheConfig = types.SimpleNamespace

    def LLM(self, model: str, **options: Any) -> FakeApi:  # noqa: N802
        self.opened = {"model": model, **options}
        return self

    def generate_stream(self, messages: list[dict[str, Any]], sampling: Any) -> FakeStream:
        self.asked.append((messages, sampling))
        self.streams.append(FakeStream(self.texts))
        return self.streams[-1]

    def close(self) -> None:
        self.opened = {}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi('{"said": "a", ', '"count": 3}')
    monkeypatch.setitem(sys.modules, "experimental", types.ModuleType("experimental"))
    monkeypatch.setitem(sys.modules, "experimental.server", fake)  # type: ignore[arg-type]
    return fake


def test_a_question_in_this_process(api: FakeApi, tmp_path: Path) -> None:
    launch = Launch(tmp_path, "Qwen3.5-9B", mtp=True)
    model = in_process.InProcessEdgeLlm(launch, thor_machine(tmp_path / "thor"))
    assert api.opened["max_batch_size"] == 1
    assert api.opened["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 3}
    assert vars(api.opened["context_cache_config"])["enabled"]
    pieces: list[str] = []
    picture = Image("d", np.zeros((32, 32, 3), np.uint8))
    asked = Question(("look: ", picture, "and ", "say"), SCHEMA, 77)
    (text,) = model.ask([asked], lambda index, piece: pieces.append(piece), lambda: False)
    assert read(text, SCHEMA)["count"] == 3
    assert pieces == ['{"said": "a", ', '"count": 3}']
    (messages, sampling) = api.asked[0]
    kinds = [part["type"] for part in messages[0]["content"]]
    assert kinds == ["text", "image_url", "text"]
    assert messages[0]["content"][2]["text"] == "and say"
    assert (sampling.temperature, sampling.top_k, sampling.max_tokens, sampling.enable_thinking) == (0.0, 1, 77, False)
    assert sampling.guided_decoding[0] == "json_schema"
    assert api.streams[0].closed
    model.close()
    assert api.opened == {}


def test_cancelled_between_two_tokens(api: FakeApi, tmp_path: Path) -> None:
    model = in_process.InProcessEdgeLlm(Launch(tmp_path, "m"), thor_machine(tmp_path / "thor"))
    stop = threading.Event()
    texts = model.ask([question(), question()], lambda *_: stop.set(), stop.is_set)
    assert texts == ['{"said": "a", ', ""]
    assert len(api.asked) == 1
    assert api.streams[0].closed


def test_faults_of_the_library_are_sentences(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = thor_machine(tmp_path / "thor")

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("CUDA out of memory")

    model = in_process.InProcessEdgeLlm(Launch(tmp_path, "m"), machine)
    monkeypatch.setattr(api, "generate_stream", broken)
    with pytest.raises(
        CompassError, match=r"was to answer a question to m, and failed: RuntimeError: CUDA out of memory"
    ):
        model.ask([question()], lambda *_: None, lambda: False)
    monkeypatch.setattr(api, "LLM", broken)
    with pytest.raises(CompassError, match=r"was to load '.*', and could not: RuntimeError"):
        in_process.InProcessEdgeLlm(Launch(tmp_path, "m"), machine)
    monkeypatch.delattr(api, "SamplingParams")
    with pytest.raises(
        EnvironmentFault, match=r"The package `experimental` must be TensorRT Edge-LLM's.*no SamplingParams"
    ):
        in_process.edgellm_api()
    monkeypatch.setitem(sys.modules, "experimental.server", None)  # type: ignore[arg-type]
    with pytest.raises(
        EnvironmentFault, match=r"cannot be imported.*pip install 'tensorrt-edgellm\[server\]==0\.11\.0'"
    ):
        in_process.edgellm_api()
