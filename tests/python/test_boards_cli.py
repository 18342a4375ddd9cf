"""`compass-edge boards` and what doctor says on a robot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from board_samples import garbled, no_gpu, orin, rtx, spark, thor

from compass_edge.boards.board import BOARDS
from compass_edge.boards.probe import Sources, probe
from compass_edge.cli.check import Check
from compass_edge.cli.doctor_board import board_checks
from compass_edge.cli.main import main

pytestmark = pytest.mark.tensorrt


def said(sources: Sources) -> dict[str, list[Check]]:
    found = dict[str, list[Check]]()
    for check in board_checks(probe(sources)):
        found.setdefault(check.name, []).append(check)
    return found


def test_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards"]) == 0
    shown = capsys.readouterr().out
    for name, board in BOARDS.items():
        assert f"{name:<12} {board.about}" in shown
    assert "40.52 GB of 62.28 GB that are left beside the system" in shown
    assert "nothing here has run on one" in shown
    assert main(["boards", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["boards"]
    assert [row["name"] for row in rows] == list(BOARDS)
    assert all(row["preset"]["fits"] for row in rows)


def test_a_board_is_shown_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "orin-agx-64"]) == 0
    shown = capsys.readouterr().out
    for text in (
        "3.46 GB   decoder              6,912,212,992 weights x 4 bits",
        "0.80 GB ~ runtime ",
        "memory that CPU and GPU share: 21.76 GB to spare",
        " * paper         40.52 GB  fits",
        "tensorrt-edgellm-serve Qwen3.5-27B-int4-awq",
        "not measured by us:",
        "Qwen3.5-9B in int4-awq: prefill of 2048 tokens 2,140 ms",
    ):
        assert text in shown


def test_an_arrangement_that_does_not_fit_is_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boards", "orin-agx-32", "--arrangement", "paper-int4"]) == 0
    shown = capsys.readouterr().out
    assert "5.23 GB TOO LITTLE" in shown
    assert " * paper-int4    35.30 GB  5.23 GB too little" in shown
    assert "   9b            20.33 GB  fits" in shown
    assert main(["boards", "orin-agx-32", "--arrangement", "huge"]) == 2
    assert "orin-agx-32 has no arrangement 'huge'" in capsys.readouterr().err
    assert main(["boards", "abacus"]) == 2
    assert "There is no board 'abacus'. There are: orin-nano-8, " in capsys.readouterr().err


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_as_json(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["boards", name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    arrangement = document["arrangement"]
    assert arrangement["need"] == sum(line["bytes"] for line in arrangement["lines"])
    assert arrangement["need"] + arrangement["spare"] == document["board"]["usable"]
    assert "not measured by us" in document["expectations"]["source"]
    assert document["commands"]
    assert all(document["sources"].values())


def test_doctor_on_orin(tmp_path: Path) -> None:
    found = said(orin(tmp_path))
    assert (
        found["board"][0].detail
        == "NVIDIA Jetson AGX Orin Developer Kit; its preset is orin-agx-64 (Jetson AGX Orin, 64 GB)"
    )
    assert found["accelerator"][0].detail == "Orin, sm_87, memory shared with the CPU, fp16/int8/int4"
    assert (found["JetPack"][0].verdict, found["JetPack"][0].detail) == ("ok", "7.2 (L4T R39.2.0)")
    assert found["power mode"][0].verdict == "ok"
    assert found["clocks"][0].detail == "GPU 1300 MHz, pinned at the highest"
    assert found["TensorRT"][0].detail == "10.16.0 of the system, 10.16.0.72 in Python"
    assert found["Edge-LLM"][0].verdict == "ok"
    assert found["Edge-LLM"][0].detail == (
        "0.11.0 is installed. TensorRT Edge-LLM 0.11.0: payload jetson-orin-jp72-cu13-sm87."
    )
    assert found["what fits"][0].detail.startswith(
        "paper of orin-agx-64 (40.52 GB of 61.85 GB free): prm: Robometer-4B"
    )


def test_doctor_on_orin_with_jetpack_6(tmp_path: Path) -> None:
    found = said(orin(tmp_path, jetpack="6.2"))
    assert "flash JetPack 7.2" in found["JetPack"][0].cure
    assert found["power mode"][0].verdict == "optional"
    assert "sudo nvpmodel -m 0 && sudo jetson_clocks" in found["power mode"][0].cure
    assert found["Edge-LLM"][0].verdict == "optional"
    assert "glibc 2.39" in found["Edge-LLM"][0].detail


def test_doctor_on_thor_warns_of_silent_garbage(tmp_path: Path) -> None:
    found = said(thor(tmp_path))
    assert "are known to return garbage without a word" in found["TensorRT"][0].detail
    assert found["Edge-LLM"][0].cure == "pip install 'tensorrt-edgellm[server]==0.11.0'"
    assert '__LUNOWUD="-peep:fc_h_fusion=off"' in found["Edge-LLM"][1].detail
    newer = said(thor(tmp_path / "newer", jetpack="7.2"))
    assert newer["TensorRT"][0].verdict == "ok"
    assert len(newer["Edge-LLM"]) == 1


def test_doctor_on_cards_spark_and_none(tmp_path: Path) -> None:
    found = said(rtx(tmp_path / "4090", "NVIDIA GeForce RTX 4090", "8.9", 24564))
    assert "x86-rtx-24" in found["board"][0].detail
    assert "driver 590.44.01, 25.76 GB, 25.13 GB free, fp16/int8/int4/fp8" in found["accelerator"][0].detail
    assert "vLLM or llama-server" in found["Edge-LLM"][0].cure
    assert "JetPack" not in found
    found = said(rtx(tmp_path / "5080", "NVIDIA GeForce RTX 5080", "12.0", 16303, nvinfer=""))
    assert "tensorrt-rtx-cu13-libs" in found["TensorRT"][0].cure
    assert found["what fits"][0].detail.startswith("9b of x86-rtx-12 (14.53 GB of 16.47 GB free)")
    assert "dgx-spark-cu13-sm121" in said(spark(tmp_path / "spark"))["Edge-LLM"][0].detail
    found = said(no_gpu(tmp_path / "none"))
    assert found["accelerator"][0].detail == "none found: everything runs on the CPU"
    assert found["what fits"][0].detail.startswith("4b of cpu")


def test_doctor_on_what_it_does_not_know(tmp_path: Path) -> None:
    found = said(garbled(tmp_path))
    assert "no preset is written for it" in found["board"][0].detail
    assert len(found["not told"]) == 5
    assert found["what fits"][0].detail.startswith("unknown")
    found = said(no_gpu(tmp_path / "small", memory=6))
    assert found["what fits"][0].detail == "no arrangement of cpu in 2.15 GB of free memory"


def test_doctor_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) in (0, 3)
    named = [check["name"] for check in json.loads(capsys.readouterr().out)["checks"]]
    assert {"board", "accelerator", "TensorRT", "Edge-LLM", "what fits"} <= set(named)
