"""The payload planner: its answer for every row of its table, and for machines that have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from board_samples import no_gpu, orin, rtx, spark, thor

from compass_edge.boards.payload import Payload, Target, table, target_of
from compass_edge.boards.payload_plan import plan_payload
from compass_edge.boards.probe import probe

pytestmark = pytest.mark.tensorrt

_ROWS = [(row, mark, abi) for row in table().payloads for mark in row.marks for abi in table().abis]


def target(row: Payload, mark: str, abi: str = "cp312") -> Target:
    glibc = table().wheels[row.arch].glibc
    return Target(abi, row.arch, row.sm, row.family, mark, glibc, (row.cudart,), (row.nvinfer,))


@pytest.mark.parametrize(
    ("row", "mark", "abi"), _ROWS, ids=lambda value: value if isinstance(value, str) else f"{value.sm}"
)
def test_every_row_is_the_answer_to_its_own_machine(row: Payload, mark: str, abi: str) -> None:
    plan = plan_payload(target(row, mark, abi))
    assert plan.payload == row
    assert plan.install == "pip install 'tensorrt-edgellm[server]==0.11.0'"
    assert ("garbage" in plan.warning) == (mark == "R38.4")


@pytest.mark.parametrize("row", table().payloads, ids=lambda row: row.title)
def test_one_wrong_thing_and_it_is_not(row: Payload) -> None:
    fits = target(row, row.marks[0])
    for wrong, said in (
        (replace(fits, python_abi="cp313"), "has wheels for Python cp310, cp311, cp312, and this is cp313"),
        (replace(fits, cudart=("libcudart.so.12",)), r"needs libcudart.so.13 (CUDA 13), and libcudart.so.12, "),
        (replace(fits, nvinfer=("libnvinfer.so.8",)), "needs libnvinfer.so.1"),
        (replace(fits, nvinfer=(), cudart=()), "and neither of them came"),
        (replace(fits, family="fedora", mark="44"), "and this is fedora 44"),
        (replace(fits, glibc=(2, 31)), "and glibc 2.31 came"),
        (replace(fits, sm=None), "needs an NVIDIA GPU, and none was found"),
        (replace(fits, arch="riscv64"), "has wheels for aarch64, x86_64, and this CPU is riscv64"),
        (replace(fits, sm=70), "has no payload for sm_70 on"),
    ):
        plan = plan_payload(wrong)
        assert plan.payload is None
        assert said in plan.why
        assert plan.instead
        assert not plan.install


def test_the_table_has_what_the_wheels_have() -> None:
    there = table()
    assert there.version == "0.11.0"
    assert {(row.arch, row.sm) for row in there.payloads} == {
        ("aarch64", 87), ("aarch64", 110), ("aarch64", 120), ("aarch64", 121),
        ("x86_64", 80), ("x86_64", 86), ("x86_64", 100), ("x86_64", 120),
    }  # fmt: skip
    assert {row.evidence for row in there.payloads} == set(there.evidence)
    assert [mark for row in there.payloads if row.sm == 87 for mark in row.marks] == ["R39.2"]
    assert {row.cudart for row in there.payloads} == {"libcudart.so.13"}


@pytest.mark.parametrize(
    ("capability", "card", "sm"),
    [("8.9", "NVIDIA GeForce RTX 4090", 89), ("9.0", "NVIDIA H100", 90), ("7.5", "Tesla T4", 75)],
)
def test_cards_without_a_payload_are_sent_to_servers(tmp_path: Path, capability: str, card: str, sm: int) -> None:
    plan = plan_payload(target_of(probe(rtx(tmp_path, card, capability, 24564))))
    assert plan.payload is None
    assert f"has no payload for sm_{sm} (" in plan.why
    assert "sm_80, sm_86, sm_100, sm_120" in plan.why
    assert "vLLM or llama-server" in plan.instead


def test_jetpack_6_cannot_have_it(tmp_path: Path) -> None:
    plan = plan_payload(target_of(probe(orin(tmp_path, jetpack="6.2"))))
    assert plan.payload is None
    assert "are for jetson R39.2, and this is jetson R36.4" in plan.why
    assert "glibc 2.39, which JetPack 7 has and JetPack 6 has not" in plan.why
    assert "Flash JetPack 7.2 (L4T R39.2" in plan.instead


def test_orin_needs_exactly_its_release(tmp_path: Path) -> None:
    fits = target_of(probe(orin(tmp_path)))
    assert plan_payload(fits).payload == next(row for row in table().payloads if row.sm == 87)
    for mark in ("R39.1", "R39.3", "R38.4", ""):
        plan = plan_payload(replace(fits, mark=mark))
        assert plan.payload is None
        assert plan.nearest is not None
        assert "R39.2" in plan.why


def test_machines(tmp_path: Path) -> None:
    found = {
        "spark": spark(tmp_path / "spark"),
        "thor 7.0": thor(tmp_path / "thor70", jetpack="7.0"),
        "thor 7.1": thor(tmp_path / "thor71"),
        "thor 7.2": thor(tmp_path / "thor72", jetpack="7.2"),
        "5080": rtx(tmp_path / "5080", "NVIDIA GeForce RTX 5080", "12.0", 16303),
        "3090": rtx(tmp_path / "3090", "NVIDIA GeForce RTX 3090", "8.6", 24576, nvinfer="11.0.0"),
    }
    plans = {name: plan_payload(target_of(probe(sources))) for name, sources in found.items()}
    assert {name: plan.payload.title if plan.payload else plan.why for name, plan in plans.items()} == {
        "spark": "dgx-spark-cu13-sm121",
        "thor 7.0": "jetson-thor-jp70-cu13-sm110",
        "thor 7.1": "jetson-thor-jp71-cu13-sm110",
        "thor 7.2": "jetson-thor-jp72-cu13-sm110",
        "5080": "x86-ubuntu2404-cu13-sm120",
        "3090": "x86_64 ubuntu 24.04 sm_86 with libnvinfer.so.11",
    }
    assert "batch of 2" in plans["thor 7.1"].warning
    assert not plans["thor 7.2"].warning


def test_a_known_card_on_another_system_has_none(tmp_path: Path) -> None:
    here = probe(rtx(tmp_path, "NVIDIA GeForce RTX 3060", "8.6", 12288, system="22.04"))
    plan = plan_payload(target_of(here))
    assert "are for ubuntu 24.04, and this is ubuntu 22.04" in plan.why
    assert "vLLM" in plan.instead
    plan = plan_payload(target_of(probe(no_gpu(tmp_path / "none"))))
    assert "none was found" in plan.why
    assert "preset cpu" in plan.instead


def test_missing_libraries_are_something_to_install(tmp_path: Path) -> None:
    here = target_of(probe(rtx(tmp_path, "NVIDIA GeForce RTX 5080", "12.0", 16303, nvinfer="")))
    plan = plan_payload(here)
    assert plan.nearest is not None
    assert "x86-ubuntu2404-cu13-sm120 needs libnvinfer.so.10 (TensorRT 10.16), and libcudart.so.13 came" in plan.why
    assert "Install them from NVIDIA's repository for ubuntu 24.04" in plan.instead
