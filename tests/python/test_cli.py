"""The command line as a person and a script meet it: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compass_edge import __version__
from compass_edge.frames.clip import write_clip
from compass_edge.frames.source import backends


def compass(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "compass_edge.cli.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", frames=30, width=256, height=192)


def test_version() -> None:
    assert compass("--version").stdout.strip() == f"compass-edge {__version__}"


def test_help_teaches_and_no_command_is_a_usage_error() -> None:
    assert "compass-edge doctor" in compass("--help").stdout
    bare = compass()
    assert bare.returncode == 2
    assert "Start here" in bare.stdout


@pytest.mark.parametrize("command", ["doctor", "demo", "frames", "run", "replay", "calibrate", "bench", "eval"])
def test_every_command_explains_itself(command: str) -> None:
    done = compass(command, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout


@pytest.mark.parametrize("backend", backends())
def test_demo_checks_its_own_pictures(backend: str) -> None:
    done = compass("frames", "--demo", "--backend", backend)
    assert done.returncode == 0, done.stderr
    assert "150 of 150 in order" in done.stdout
    assert done.stderr == ""  # no progress bar outside a terminal


@pytest.mark.parametrize("backend", backends())
def test_frames_as_json(clip: Path, backend: str) -> None:
    done = compass("frames", str(clip), "--every", "10", "--json", "--backend", backend)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["stats"]["frames"] == 30
    assert report["patched"] == 3
    assert report["grid"] == [14, 20]  # 256x192 has fewer than min_pixels and becomes 320x224
    assert report["visual_tokens"] == 14 * 20 // 4
    assert report["stats"]["damaged_frames"] == report["gaps"] == 0


def test_limit_stops_early(clip: Path) -> None:
    assert json.loads(compass("frames", str(clip), "--limit", "7", "--json").stdout)["stats"]["frames"] == 7


@pytest.mark.parametrize("backend", backends())
def test_a_truncated_file_is_said_to_be(tmp_path: Path, backend: str) -> None:
    whole = write_clip(tmp_path / "whole.mp4", frames=60, width=256, height=192, muxer={"movflags": "faststart"})
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(whole.read_bytes()[: int(0.7 * whole.stat().st_size)])
    done = compass("frames", str(cut), "--backend", backend)
    assert done.returncode == 0
    assert "promised 60 frames and ends early: it is truncated" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("frames", "no/such.mp4"), 2, "There is no file"),
        (("frames", "."), 2, "is a folder"),
        (("frames",), 2, "and neither came"),
        (("frames", "x.mp4", "--demo"), 2, "and both came"),
        (("frames", "x.mp4", "--every", "0"), 2, "at least 1"),
        (("frames", "x.mp4", "--model", "gpt"), 2, "invalid choice"),
        (("bench", "nothing"), 2, "There is no benchmark"),
        (("nonsense",), 2, "invalid choice"),
    ],
)
def test_bad_input_gets_a_sentence(arguments: tuple[str, ...], code: int, part: str) -> None:
    done = compass(*arguments)
    assert done.returncode == code
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_instruction_set_gets_a_sentence() -> None:
    done = compass("frames", "--demo", COMPASS_EDGE_ISA="mmx")
    assert done.returncode == 2
    assert "mmx" in done.stderr
    assert "Traceback" not in done.stderr


# Presses Ctrl-C while the 50th frame is being decoded.
_INTERRUPTED = """
import os, signal, sys
from compass_edge.cli.main import main
from compass_edge.frames.source import Source
step, count = Source.step, 0
def counted(self):
    global count
    count += 1
    if count == 50:
        os.kill(os.getpid(), signal.SIGINT)
    return step(self)
Source.step = counted
sys.exit(main(["frames", sys.argv[1], "--json"]))
"""


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "long.mp4", frames=400, width=256, height=192)
    command = [sys.executable, "-c", _INTERRUPTED, str(clip)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 128 + signal.SIGINT
    report = json.loads(done.stdout)
    assert report["stopped_early"]
    assert 45 <= report["stats"]["frames"] <= 50


def test_output_into_a_closed_pipe_is_quiet() -> None:
    """The reader leaves before the first byte: `compass-edge doctor --json | true`."""
    command = [sys.executable, "-m", "compass_edge.cli.main", "doctor", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 0


def test_the_loop_example_runs() -> None:
    script = Path(__file__).parents[2] / "examples" / "loop.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *curve, last = done.stdout.splitlines()
    values = [float(line.split()[2]) for line in curve]
    assert values == sorted(values)
    assert values[-1] == 100
    assert "DONE" in last


def test_the_quickstart_runs(clip: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "quickstart.py"
    command = [sys.executable, str(script), str(clip)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == [
        f"{time:7.2f} s  256x192 yuv420p -> (280, 1536) float16" for time in (0, 10 / 30, 20 / 30)
    ]
