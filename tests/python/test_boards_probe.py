"""The probe on whole machines: what it reads, what it recognises, and what it says of sources that are missing or garbled."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from board_samples import garbled, meminfo, no_gpu, orin, played, rtx, spark, thor

from compass_edge.boards.board import BOARDS
from compass_edge.boards.command import Answer, run_command
from compass_edge.boards.jetson import parse_release
from compass_edge.boards.probe import Sources, probe
from compass_edge.boards.recognition import board_of, precisions_of, shortfall

pytestmark = pytest.mark.tensorrt


def test_orin_with_jetpack_7(tmp_path: Path) -> None:
    machine = probe(orin(tmp_path))
    assert (machine.l4t, machine.l4t_release, machine.jetpack) == ("R39.2.0", "R39.2", "7.2")
    assert machine.model == "NVIDIA Jetson AGX Orin Developer Kit"
    assert machine.gpu is not None
    assert (machine.gpu.sm, machine.gpu.memory) == (87, None)
    assert (machine.power_mode, machine.clocks) == ("MAXN", "GPU 1300 MHz, pinned at the highest")
    assert (machine.tensorrt, machine.nvinfer, machine.cudart) == (
        "10.16.0",
        ("libnvinfer.so.10",),
        ("libcudart.so.13",),
    )
    assert machine.packages == {"tensorrt": "10.16.0.72", "tensorrt-edgellm": "0.11.0"}
    assert machine.troubles == ()
    assert board_of(machine) is BOARDS["orin-agx-64"]
    assert precisions_of(machine) == ("fp16", "int8", "int4")


@pytest.mark.parametrize(
    ("model", "memory", "board"),
    [
        ("NVIDIA Jetson AGX Orin Developer Kit", 64, "orin-agx-64"),
        ("NVIDIA Jetson AGX Orin", 32, "orin-agx-32"),
        ("NVIDIA Jetson Orin NX Engineering Reference Developer Kit Super", 16, "orin-nx-16"),
        ("NVIDIA Jetson Orin NX Engineering Reference Developer Kit", 8, "orin-nano-8"),
        ("NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super", 8, "orin-nano-8"),
        ("NVIDIA Jetson Orin Nano", 4, None),
    ],
)
def test_orins_are_told_apart_by_memory(tmp_path: Path, model: str, memory: int, board: str | None) -> None:
    found = board_of(probe(orin(tmp_path, model=model, memory=memory)))
    assert (found.name if found else None) == board


def test_orin_with_jetpack_6(tmp_path: Path) -> None:
    machine = probe(orin(tmp_path, jetpack="6.2"))
    assert (machine.l4t, machine.jetpack, machine.power_mode) == ("R36.4.3", "6.1 or 6.2", "MODE_30W")
    assert machine.nvinfer == ("libnvinfer.so.10",)
    assert machine.cudart == ("libcudart.so.12",)
    assert board_of(machine) is BOARDS["orin-agx-64"]


def test_thor(tmp_path: Path) -> None:
    machine = probe(thor(tmp_path))
    assert (machine.jetpack, machine.tensorrt, machine.power_mode) == ("7.1", "10.13.3", "120W")
    assert machine.gpu is not None
    assert (machine.gpu.name, machine.gpu.sm, machine.gpu.driver) == ("NVIDIA Thor", 110, "580.00")
    assert board_of(machine) is BOARDS["thor"]
    assert precisions_of(machine) == ("fp16", "int8", "int4", "fp8", "nvfp4")
    assert len(machine.troubles) == 1
    assert "/sys/class/devfreq has no readable GPU either" in machine.troubles[0]


def test_clocks_of_sys_where_the_tool_wants_root(tmp_path: Path) -> None:
    sources = thor(tmp_path)
    folder = tmp_path / "sys/class/devfreq/gpu-gpc-0"
    folder.mkdir(parents=True)
    for name, value in (("min_freq", 315000000), ("max_freq", 1575000000), ("cur_freq", 315000000)):
        (folder / name).write_text(f"{value}\n")
    machine = probe(sources)
    assert machine.clocks == "GPU 315 MHz, free from 315 to 1575 MHz"
    assert machine.troubles == ()


@pytest.mark.parametrize(
    ("card", "capability", "mebibytes", "board", "has_fp8"),
    [
        ("NVIDIA GeForce RTX 4090", "8.9", 24564, "x86-rtx-24", True),
        ("NVIDIA GeForce RTX 5080", "12.0", 16303, "x86-rtx-12", True),
        ("NVIDIA GeForce RTX 3060", "8.6", 12288, "x86-rtx-12", False),
        ("NVIDIA GeForce RTX 3070", "8.6", 8192, None, False),
        ("Tesla V100", "7.0", 32768, None, False),
    ],
)
def test_cards(tmp_path: Path, card: str, capability: str, mebibytes: int, board: str | None, has_fp8: bool) -> None:
    machine = probe(rtx(tmp_path, card, capability, mebibytes))
    assert machine.gpu is not None
    assert machine.gpu.name == card
    assert machine.gpu.memory == mebibytes << 20
    assert machine.gpu.free == (mebibytes - 600) << 20
    found = board_of(machine)
    assert (found.name if found else None) == board
    assert ("fp8" in precisions_of(machine)) == has_fp8


def test_spark_and_no_gpu(tmp_path: Path) -> None:
    assert board_of(probe(spark(tmp_path / "spark"))) is BOARDS["spark"]
    machine = probe(no_gpu(tmp_path / "none"))
    assert board_of(machine) is BOARDS["cpu"]
    assert machine.gpu is None
    assert machine.troubles == ()  # a computer without nvidia-smi lacks nothing


def test_several_cards_are_counted(tmp_path: Path) -> None:
    line = "NVIDIA GeForce RTX 3090, 8.6, 590.44.01, 24576, 24000\n"
    machine = probe(played(tmp_path, {"proc/meminfo": meminfo(60, 50)}, {"nvidia-smi": line * 2}, arch="x86_64"))
    assert machine.gpus == 2


def test_garbled_sources_are_told(tmp_path: Path) -> None:
    machine = probe(garbled(tmp_path))
    assert machine.l4t == machine.os_id == machine.power_mode == machine.clocks == machine.tensorrt == ""
    assert machine.memory is None
    assert machine.nvinfer == ("libnvinfer.so.10",)
    told = "\n".join(machine.troubles)
    for said in (
        "/etc/nv_tegra_release was to begin like '# R39 (release), REVISION: 2.0', and has '# Rxx (oops)'.",
        "`nvidia-smi` was to list a card's name,compute_cap,driver_version,memory.total,memory.free, and said: 'Failed",
        "/proc/meminfo was to tell MemTotal and MemAvailable, and does not.",
        "`nvpmodel -q` was to name the power mode, and said: 'NVPM ERROR: no such device'.",
        "Run as root. /sys/class/devfreq has no readable GPU either",
    ):
        assert said in told
    assert machine.gpu is not None
    assert (machine.gpu.sm, machine.gpu.memory, machine.gpu.driver) == (None, None, "")


def test_an_empty_machine_is_no_error(tmp_path: Path) -> None:
    machine = probe(played(tmp_path, {}))
    assert machine.model == ""
    assert machine.troubles == ("/proc/meminfo was to tell MemTotal and MemAvailable, and does not.",)


def test_a_source_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "etc/os-release").mkdir(parents=True)
    machine = probe(played(tmp_path, {"proc/meminfo": meminfo(8, 4)}))
    assert f"'{tmp_path}/etc/os-release' cannot be read: Is a directory." in machine.troubles


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("# R39 (release), REVISION: 2.1, GCID: 1", "R39.2.1"),
        ("# R38 (release), REVISION: 4, GCID: 1", "R38.4"),
        ("# R35 (release), REVISION: 6.1, GCID", "R35.6.1"),
        ("R39", ""),
        ("", ""),
    ],
)
def test_releases(text: str, release: str) -> None:
    assert parse_release(text) == release


def test_this_machine_is_read_without_an_exception() -> None:
    machine = probe()
    assert machine.memory
    assert machine.free
    assert machine.python_abi == f"cp3{sys.version_info.minor}"


def test_commands_end_in_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_command(("no-such-command-anywhere",)) == Answer(
        trouble="`no-such-command-anywhere` is not installed.", there=False
    )
    assert run_command(("echo", "hello")).output == "hello\n"
    assert "failed with exit code 1: it said nothing" in run_command(("false",)).trouble
    monkeypatch.setattr("compass_edge.boards.command._DEADLINE_S", 0.05)
    assert "did not answer within" in run_command(("sleep", "5")).trouble


def test_a_machine_that_is_another_board_is_told_so(tmp_path: Path) -> None:
    machine = probe(orin(tmp_path, memory=32))
    assert shortfall(BOARDS["orin-agx-32"], machine) == ""
    assert shortfall(BOARDS["orin-nx-16"], machine) == ""  # more than it asks for
    assert "Jetson AGX Orin, 64 GB (sm_87), and Orin with 30.7 GiB came." in shortfall(BOARDS["orin-agx-64"], machine)
    assert "(sm_110), and Orin (sm_87) came." in shortfall(BOARDS["thor"], machine)
    assert "no NVIDIA GPU was found here" in shortfall(BOARDS["thor"], probe(no_gpu(tmp_path / "none")))


def test_sources_default_to_this_machine() -> None:
    assert Sources().root == Path("/")
