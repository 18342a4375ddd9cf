"""Quantizing and exporting through the adapter: what is skipped, what is refused, and what a stop leaves behind. The tools are played."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from board_samples import no_gpu
from edgellm_samples import (
    calls,
    conversion,
    frames_of,
    played_environment,
    small_checkpoint,
    thor_machine,
    write_pictures,
)

from compass_edge.boards.probe import probe
from compass_edge.cli.main import main
from compass_edge.engines.edgellm.command_line import ServerLimits
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError
from compass_edge.export.edgellm import environment as making
from compass_edge.export.edgellm.build import build_engines
from compass_edge.export.edgellm.environment import (
    FORBIDDEN,
    PINS,
    TORCH,
    Environment,
    check_interpreter,
    check_packages,
    environment_folder,
    install_commands,
    make_environment,
    open_environment,
)
from compass_edge.export.edgellm.process import run_logged

pytestmark = pytest.mark.tensorrt


# The environment


def test_torch_comes_first_and_alone() -> None:
    """Resolved with the others, pip takes the torch that comes with gigabytes of CUDA."""
    commands = install_commands(Environment(Path("/e")), "python3.12")
    assert [words[-1] for _, words in commands[:2]] == ["/e", TORCH]
    assert commands[0][1][:3] == ["python3.12", "-m", "venv"]
    assert commands[1][1][:4] == ["/e/bin/python", "-m", "pip", "install"]
    assert sum(word.startswith("torch==") for word in commands[1][1]) == 1
    assert commands[2][1][-len(PINS) :] == list(PINS)  # torch again: nothing may replace it


def test_every_version_is_exact_and_torchvision_is_never_there() -> None:
    assert all(pin.count("==") == 1 for pin in PINS)
    assert PINS[0] == TORCH
    assert not any(pin.split("==")[0] in FORBIDDEN for pin in PINS)
    assert {"tensorrt-edgellm==0.11.0", "nvidia-modelopt==0.45.0", "transformers==5.14.1"} < set(PINS)


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_EDGELLM", "/a/b")
    assert environment_folder() == Path("/a/b")
    monkeypatch.delenv("COMPASS_EDGE_EDGELLM")
    monkeypatch.setenv("XDG_DATA_HOME", "/c")
    assert environment_folder() == Path("/c/compass-edge/edgellm-0.11.0")


def test_a_finished_one_is_checked_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = played_environment(tmp_path / "e", torch="2.13.0+cpu")
    monkeypatch.setattr(making, "run_logged", lambda *_, **__: pytest.fail("installed again"))
    assert make_environment(tmp_path / "e") == environment == open_environment(tmp_path / "e")
    assert check_packages(environment)["torch"] == "2.13.0+cpu"


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"torch": "2.14.0"}, r"must have torch 2\.13\.0, and 2\.14\.0 is installed\. Delete the folder"),
        ({"onnx": None}, r"must have onnx 1\.19\.0, and none is installed"),
        ({"torchvision": "0.28.0"}, r"must not have torchvision, .* and 0\.28\.0 is installed\. Remove it"),
    ],
)
def test_one_that_was_changed_is_refused(tmp_path: Path, versions: dict[str, Any], said: str) -> None:
    with pytest.raises(IntegrityError, match=said):
        check_packages(played_environment(tmp_path / "e", **versions))


def test_an_unfinished_one_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "e"
    with pytest.raises(EnvironmentFault, match=r"not there, or not finished.*models edgellm"):
        open_environment(folder)
    ran: list[list[str]] = []

    def run(words: list[str], *_: Any, **__: Any) -> None:
        ran.append(words)
        if words[1:3] == ["-m", "venv"]:
            played_environment(folder)
            (folder / "compass-edge.json").unlink()
            (folder / "pyvenv.cfg").touch()
        if words[-1] == TORCH and len(ran) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(making, "run_logged", run)
    with pytest.raises(KeyboardInterrupt):
        make_environment(folder)
    assert not (folder / "compass-edge.json").exists()
    steps: list[tuple[str, int, int]] = []
    monkeypatch.setattr(making, "_works", lambda _python: True)
    make_environment(folder, on_step=lambda *step: steps.append(step))
    assert [words[-1] for words in ran[2:]] == [TORCH, PINS[-1]]  # the venv itself was kept
    assert steps[-1][1:] == (making.STEPS, making.STEPS)
    assert json.loads((folder / "compass-edge.json").read_text())["pins"] == list(PINS)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(EnvironmentFault, match=r"must be empty or an environment of this kind"):
        make_environment(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_no_room_and_no_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFault, match=r"must be a Python, and does not start as one"):
        check_interpreter(str(tmp_path / "nothing"))
    odd = tmp_path / "python"
    odd.write_text("#!/bin/sh\necho 3 14\n")
    odd.chmod(0o755)
    with pytest.raises(
        EnvironmentFault, match=r"wheels for Python 3\.10 to 3\.12, and .* is 3\.14\. Name another with --python"
    ):
        check_interpreter(str(odd))
    monkeypatch.setattr(making, "_ROOM", 1 << 62)
    monkeypatch.setattr(making, "check_interpreter", lambda _: None)
    with pytest.raises(EnvironmentFault, match=r"GiB are free\. Free some, or set COMPASS_EDGE_EDGELLM"):
        make_environment(tmp_path / "e")


# Programs


def test_what_a_program_says_last_is_in_the_sentence(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(
        CompassError, match=r"^It failed with exit code 1\. It said: ValueError: 3 came\. All .* is in '.*log'\.$"
    ):
        run_logged([sys.executable, "-c", "raise ValueError('3 came')"], log, "It")
    with pytest.raises(
        CompassError, match=r"ended by SIGKILL, as the system does when memory runs out\. It said nothing"
    ):
        run_logged([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], tmp_path / "other", "It")
    with pytest.raises(EnvironmentFault, match=r"It needs `.*nothing`, which could not be started"):
        run_logged([str(tmp_path / "nothing")], log, "It")


def test_a_program_that_is_stopped_takes_its_children_along(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    with pytest.raises(KeyboardInterrupt):
        run_logged([sys.executable, "-c", code], tmp_path / "log", "It", cancelled=lambda: _written(tmp_path / "pid"))
    assert _gone(int((tmp_path / "pid").read_text()))


def _written(path: Path) -> bool:
    return path.exists() and path.read_text() != ""


def _gone(pid: int) -> bool:
    for _ in range(500):
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


# Conversions


def test_both_steps_and_then_nothing_is_left_to_do(tmp_path: Path) -> None:
    environment = played_environment(tmp_path / "e")
    made = conversion(tmp_path, environment)
    frames = frames_of(tmp_path / "c", 3)
    first, second = made.quantize(frames), made.export()
    assert (first.algorithm, first.made, second.algorithm, second.made) == ("W4A16_AWQ", True, "W4A16_AWQ", True)
    quantize, export = calls(environment)
    assert (quantize["quantization"], quantize["head"], quantize["device"]) == ("int4_awq", None, "auto")
    assert len(quantize["samples"]) == 3
    assert export["arguments"][0].endswith("out/quantized")
    assert export["arguments"][2:] == ["--externalize-weights", "int4_ffn"]
    again = conversion(tmp_path, environment)
    assert (again.quantize(frames).made, again.export().made) == (False, False)
    assert len(calls(environment)) == 2
    assert not list((tmp_path / "out").glob(".*"))
    assert json.loads((tmp_path / "out" / "edgellm.json").read_text())["steps"]["quantized"]["frames"] == 3


def test_what_was_made_of_something_else_is_not_taken(tmp_path: Path) -> None:
    environment = played_environment(tmp_path / "e")
    frames = frames_of(tmp_path / "c", 3)
    conversion(tmp_path, environment).quantize(frames)
    for other, board in ((frames_of(tmp_path / "c", 2), "orin-agx-64"), (frames, "thor")):
        with pytest.raises(UsageError, match=r"was made of something else.*Choose another folder, or delete this one"):
            conversion(tmp_path, environment, board).quantize(other)


@pytest.mark.parametrize(
    ("behaviour", "error", "said"),
    [
        (
            "fail",
            CompassError,
            r"quantizer failed with exit code 1\. It said: RuntimeError: the weights are of another model\.",
        ),
        ("wrong", IntegrityError, r"was to write a checkpoint in W4A16_AWQ, and FP8 came"),
    ],
)
def test_a_failure_leaves_nothing_and_the_next_run_works(
    tmp_path: Path, behaviour: str, error: type[CompassError], said: str
) -> None:
    environment = played_environment(tmp_path / "e", f"{behaviour} well")
    frames = frames_of(tmp_path / "c", 2)
    with pytest.raises(error, match=said):
        conversion(tmp_path, environment).quantize(frames)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quantized.log"]
    assert conversion(tmp_path, environment).quantize(frames).made


def test_a_graph_that_is_missing_is_seen(tmp_path: Path) -> None:
    made = conversion(tmp_path, played_environment(tmp_path / "e", "well wrong well"))
    made.quantize(frames_of(tmp_path / "c", 2))
    with pytest.raises(IntegrityError, match=r"exporter was to write '.*visual/config\.json', and it is not there"):
        made.export()
    assert not (tmp_path / "out" / "onnx").exists()
    assert made.export().made


def test_a_stop_leaves_no_final_name(tmp_path: Path) -> None:
    environment = played_environment(tmp_path / "e", "wait well")
    waiting = environment.folder / "bin" / "waiting"
    with pytest.raises(KeyboardInterrupt):
        conversion(tmp_path, environment, cancelled=waiting.exists).quantize(frames_of(tmp_path / "c", 2))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quantized.log"]
    assert conversion(tmp_path, environment).quantize(frames_of(tmp_path / "c", 2)).made


def test_only_what_is_quantized_is_exported(tmp_path: Path) -> None:
    environment = played_environment(tmp_path / "e")
    with pytest.raises(UsageError, match=r"must be quantized, by its hf_quant_config.json .* Leave out --only"):
        conversion(tmp_path, environment).export()
    (tmp_path / "checkpoint" / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "NVFP4"}}')
    step = conversion(tmp_path, environment, "thor").export()
    assert (step.algorithm, step.made) == ("NVFP4", True)


# Engines, which are built on the device


def test_engines_are_built_under_another_name_first(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "quantized")
    program = tmp_path / "bin" / "tensorrt-edgellm-build"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport os, sys\nos.makedirs(sys.argv[4])\n")
    program.chmod(0o755)
    machine, engines = thor_machine(tmp_path / "thor"), tmp_path / "engines"

    def build() -> Path:
        return build_engines(tmp_path / "quantized", engines, ServerLimits(), programs=program.parent, machine=machine)

    with pytest.raises(IntegrityError, match=r"was to write engines into '.*', and there is none"):
        build()
    assert not engines.exists()
    program.write_text(program.read_text() + "open(sys.argv[4] + '/llm.engine', 'w').write('engine')\n")
    assert [path.name for path in build().iterdir()] == ["llm.engine"]
    with pytest.raises(UsageError, match=r"is there already"):
        build()
    with pytest.raises(UsageError, match=r"has no config\.json"):
        build_engines(tmp_path, tmp_path / "other", ServerLimits(), machine=machine)
    with pytest.raises(EnvironmentFault, match=r"cannot run here"):
        build_engines(tmp_path, tmp_path / "other", ServerLimits(), machine=probe(no_gpu(tmp_path / "none")))


# The command


def test_the_command_builds_engines_on_the_board_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small_checkpoint(tmp_path / "quantized")
    words = [
        "models",
        "edgellm",
        str(tmp_path / "quantized"),
        str(tmp_path / "engines"),
        "--board",
        "thor",
        "--only",
        "build",
    ]
    assert main(words) == 3
    assert "TensorRT Edge-LLM cannot run here" in capsys.readouterr().err
    program = tmp_path / "bin" / "tensorrt-edgellm-build"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nos.makedirs(sys.argv[4])\nopen(sys.argv[4] + '/a.engine', 'w').write(' '.join(sys.argv))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    thor = thor_machine(tmp_path / "thor")
    monkeypatch.setattr("compass_edge.engines.edgellm.readiness.probe", lambda: thor)
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    asked = (tmp_path / "engines" / "a.engine").read_text()
    assert f"--max-input-len {told['prompt']} --max-kv-cache-capacity {told['context']}" in asked
    assert "--spec-type mtp" in asked


def test_the_command_makes_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played_environment(tmp_path / "e")
    monkeypatch.setenv("COMPASS_EDGE_EDGELLM", str(tmp_path / "e"))
    small_checkpoint(tmp_path / "Qwen3-VL-4B")
    words = [
        "models",
        "edgellm",
        str(tmp_path / "Qwen3-VL-4B"),
        str(tmp_path / "out"),
        "--board",
        "thor",
        "--samples",
        "2",
    ]
    assert main([*words, "--only", "quantize"]) == 0
    said = capsys.readouterr().out
    assert "Qwen3-VL-4B for thor: nvfp4, output layer nvfp4" in said
    assert "Next, on the board: tensorrt-edgellm-serve" in said
    assert not (tmp_path / "out" / "onnx").exists()
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: step["made"] for name, step in told["steps"].items()} == {"quantized": False, "onnx": True}
    assert told["recipe"]["quantization"] == "nvfp4"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere", "out", "--board", "thor"], 2, "There is no folder 'nowhere'"),
        (["CHECKPOINT", "out", "--board", "toaster"], 2, "There is no board 'toaster'"),
        (["CHECKPOINT", "out", "--board", "cpu"], 2, "the board cpu is without one"),
        (["CHECKPOINT", "out", "--board", "orin-nx-16", "--precision", "nvfp4"], 2, "and nvfp4 was asked for"),
    ],
)
def test_the_command_refuses_before_anything_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("COMPASS_EDGE_EDGELLM", str(tmp_path / "e"))
    monkeypatch.chdir(tmp_path)
    small_checkpoint(tmp_path / "CHECKPOINT")
    assert main(["models", "edgellm", *words]) == code
    assert said in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"CHECKPOINT"}


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["models", "edgellm", "--help"])
    said = capsys.readouterr().out
    for word in ("--frames", "orin-agx-64", "OUT/quantized", "Ctrl-C", "$COMPASS_EDGE_EDGELLM"):
        assert word in said


def test_ctrl_c_ends_the_command_and_its_tools(tmp_path: Path) -> None:
    environment = played_environment(tmp_path / "e", "wait")
    small_checkpoint(tmp_path / "checkpoint")
    frames = write_pictures(tmp_path / "c", 2)
    code = "import sys; from compass_edge.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [
        "models",
        "edgellm",
        str(tmp_path / "checkpoint"),
        str(tmp_path / "out"),
        "--board",
        "thor",
        "--frames",
        str(frames),
    ]
    settings = {**os.environ, "COMPASS_EDGE_EDGELLM": str(environment.folder)}
    running = subprocess.Popen([sys.executable, "-c", code, *words], env=settings, stderr=subprocess.PIPE, text=True)
    for _ in range(6000):
        if (environment.folder / "bin" / "waiting").exists() or running.poll() is not None:
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "The same command goes on with what is finished." in said
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"quantized.log"}
