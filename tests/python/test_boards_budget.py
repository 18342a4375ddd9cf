"""Memory budgets against hand computation: the numbers below are written out, and nothing of the code counts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compass_edge.boards import shape
from compass_edge.boards.arrangements import PRESET, arrangements, preset_arrangement
from compass_edge.boards.board import BOARDS, OF_SM
from compass_edge.boards.budget import Budget, budget_of
from compass_edge.boards.fitting import alternative, budgets, check_fit, find_arrangement
from compass_edge.boards.number_format import FORMATS, find_format
from compass_edge.boards.part import Arrangement, Formats, Limits, Part
from compass_edge.boards.published import PUBLISHED, Published
from compass_edge.boards.shape import find_shape, shapes
from compass_edge.errors import EnvironmentFault, UsageError

pytestmark = pytest.mark.tensorrt

# A tower: 1536 values and a bias a patch and 2304 places, blocks, what merges four patches to a token, and that again for each tap.

# RoboMeter-4B: 36 layers of width 2560, 32 query and 8 key heads of 128, MLP of 9728.
RM_MATRICES = 36 * (2560 * 4096 + 2 * 2560 * 1024 + 4096 * 2560 + 3 * 2560 * 9728)
RM_NORMS = 36 * (2 * 128 + 2 * 2560) + 2560
RM_WORDS = 151_674 * 2560
RM_HEADS = 3 * (2560 * 1280 + 3 * 1280) + 1280 * 12 + 12 + 2560
RM_TOWER = (
    3841 * 1024
    + 24 * (4 * 1024 * 1024 + 4 * 1024 + 2 * 1024 * 4096 + 4096 + 5 * 1024)
    + (4_096 * 4_096 + 4_096 + 4_096 * 2_560 + 2_560)
    + 2 * 1024
    + 3 * (4_096 * 4_096 + 4_096 + 4_096 * 2_560 + 2_560 + 2 * 4096)
)
RM_LAYER = 4 * 2560 + 2 * 9728 + 2 * 4096

RM_FP16 = (
    2 * (RM_MATRICES + RM_NORMS + RM_WORDS + RM_HEADS + RM_TOWER)
    + 64 * 300 * 2560 * 4 * 2  # features of 64 frames, and of three taps
    + 2560 * RM_LAYER * 2  # activations
    + 32 * 2560 * 2560 * 2  # scores
    + 4 * 1200 * 12_288 * 2  # the tower, four pictures at once
    + 500_000_000
)
RM_INT4 = RM_FP16 - 2 * RM_MATRICES + RM_MATRICES // 2 + RM_MATRICES // 32 * 2
RM_NANO = RM_INT4 - RM_WORDS - 48 * 300 * 2560 * 4 * 2 - 3 * 1200 * 12_288 * 2
RM_CPU = (
    RM_MATRICES // 2 + RM_MATRICES // 32 * 4 + 4 * RM_NORMS + RM_WORDS + 4 * RM_HEADS + 4 * RM_TOWER
    + 36 * 2 * 8 * 128 * 2560 * 2 * 4  # keys and values of two sequences in fp32
    + 32 * 300 * 2560 * 4 * 4
    + 2560 * RM_LAYER * 4
    + 32 * 2560 * 2560 * 4
    + 1200 * 12_288 * 4
    + 200_000_000
)  # fmt: skip

# Qwen3-VL-2B: 28 layers of width 2048, 16 query and 8 key heads of 128, MLP of 6144.
VL2_MATRICES = 28 * (2048 * 2048 + 2 * 2048 * 1024 + 2048 * 2048 + 3 * 2048 * 6144)
VL2_NORMS = 28 * (2 * 128 + 2 * 2048) + 2048
VL2_WORDS = 151_936 * 2048
VL2_TOWER = (
    3841 * 1024
    + 24 * (4 * 1024 * 1024 + 4 * 1024 + 2 * 1024 * 4096 + 4096 + 5 * 1024)
    + (4_096 * 4_096 + 4_096 + 4_096 * 2_048 + 2_048)
    + 2 * 1024
    + 3 * (4_096 * 4_096 + 4_096 + 4_096 * 2_048 + 2_048 + 2 * 4096)
)
VL2_CPU = (
    VL2_MATRICES // 2 + VL2_MATRICES // 32 * 4 + 4 * VL2_NORMS + VL2_WORDS
    + VL2_WORDS // 2 + VL2_WORDS // 32 * 4  # the output layer
    + 4 * VL2_TOWER
    + 28 * 2 * 8 * 128 * 2048 * 2 * 4
    + 8 * 300 * 2048 * 4 * 4
    + 1536 * (4 * 2048 + 2 * 6144 + 2 * 2048) * 4
    + 16 * 1536 * 1536 * 4
    + 1200 * 12_288 * 4
    + 200_000_000
)  # fmt: skip

# Qwen3.5: each fourth layer attends with heads of 256 and a gate beside the query; the others keep a state of 128 x 128 a head.
S_MATRICES = 6 * (1024 * 4096 + 2 * 1024 * 512 + 2048 * 1024) + 18 * 1024 * (6144 + 2 * 2048) + 24 * 3 * 1024 * 3584
S_REST = 6 * 512 + 24 * 2048 + 1024 + 18 * (2 * 1024 * 16 + 2 * 16 + 128 + 6144 * 4)
S_WORDS = 248_320 * 1024
S_TOWER = (
    3841 * 768
    + 12 * (4 * 768 * 768 + 4 * 768 + 2 * 768 * 3072 + 3072 + 5 * 768)
    + (3_072 * 3_072 + 3_072 + 3_072 * 1_024 + 1_024)
    + 2 * 768
)
S_NANO = (
    S_MATRICES // 2 + S_MATRICES // 128 * 2 + 2 * S_REST + 2 * S_WORDS
    + S_WORDS // 2 + S_WORDS // 128 * 2
    + 2 * S_TOWER
    + 6 * 2 * 2 * 256 * 2048 * 2
    + 18 * (16 * 128 * 128 + 3 * 6144) * 4
    + 1536 * (4 * 1024 + 2 * 3584 + 2 * 4096) * 2
    + 1200 * (8 * 768 + 3072) * 2
    + 800_000_000
)  # fmt: skip

F_MATRICES = 8 * (2560 * 8192 + 2 * 2560 * 1024 + 4096 * 2560) + 24 * 2560 * (8192 + 2 * 4096) + 32 * 3 * 2560 * 9216
F_REST = 8 * 512 + 32 * 5120 + 2560 + 24 * (2 * 2560 * 32 + 2 * 32 + 128 + 8192 * 4)
F_WORDS = 248_320 * 2560
F_TOWER = (
    3841 * 1024
    + 24 * (4 * 1024 * 1024 + 4 * 1024 + 2 * 1024 * 4096 + 4096 + 5 * 1024)
    + (4_096 * 4_096 + 4_096 + 4_096 * 2_560 + 2_560)
    + 2 * 1024
)
F_INT4 = (
    F_MATRICES // 2 + F_MATRICES // 128 * 2 + 2 * (F_REST + 2 * F_WORDS + F_TOWER)
    + 8 * 2 * 4 * 256 * 4096 * 2
    + 24 * (32 * 128 * 128 + 3 * 8192) * 4
    + 2048 * (4 * 2560 + 2 * 9216 + 2 * 8192) * 2
    + 1200 * 12_288 * 2
    + 800_000_000
)  # fmt: skip

N_ATTENTION = 4096 * 8192 + 2 * 4096 * 1024 + 4096 * 4096
N_MLP = 3 * 4096 * 12_288
N_MATRICES = 8 * N_ATTENTION + 24 * 4096 * (8192 + 2 * 4096) + 32 * N_MLP
N_REST = 8 * 512 + 32 * 8192 + 4096 + 24 * (2 * 4096 * 32 + 2 * 32 + 128 + 8192 * 4)
N_WORDS = 248_320 * 4096
N_TOWER = (
    3841 * 1152
    + 27 * (4 * 1152 * 1152 + 4 * 1152 + 2 * 1152 * 4304 + 4304 + 5 * 1152)
    + (4_608 * 4_608 + 4_608 + 4_608 * 4_096 + 4_096)
    + 2 * 1152
)
N_STATES = 24 * (32 * 128 * 128 + 3 * 8192) * 4
N_WORK = 2048 * (4 * 4096 + 2 * 12_288 + 2 * 8192) * 2 + 1200 * (8 * 1152 + 4304) * 2 + 800_000_000
N_INT4 = (
    N_MATRICES // 2 + N_MATRICES // 128 * 2 + 2 * (N_REST + 2 * N_WORDS + N_TOWER)
    + 8 * 2 * 4 * 256 * 4096 * 2 + N_STATES + N_WORK
)  # fmt: skip
N_NVFP4 = (
    N_MATRICES // 2 + N_MATRICES // 16 + 2 * (N_REST + N_WORDS + N_TOWER) + N_WORDS // 2 + N_WORDS // 16
    + 8 * 2 * 4 * 256 * 4096 * 2 + N_STATES + N_WORK
)  # fmt: skip
# One layer more that drafts: its matrices, the one that joins two vectors, its norms, its keys and values.
N_DRAFT = N_ATTENTION + N_MLP + 2 * 4096 * 4096
N_MTP = N_NVFP4 + N_DRAFT // 2 + N_DRAFT // 16 + 2 * (2 * 4096 + 512 + 3 * 4096) + 2 * 4 * 256 * 4096 * 2

B_ATTENTION = 5120 * 12_288 + 2 * 5120 * 1024 + 6144 * 5120
B_MLP = 3 * 5120 * 17_408
B_MATRICES = 16 * B_ATTENTION + 48 * 5120 * (10_240 + 2 * 6144) + 64 * B_MLP
B_REST = 16 * 512 + 64 * 10_240 + 5120 + 48 * (2 * 5120 * 48 + 2 * 48 + 128 + 10_240 * 4)
B_WORDS = 248_320 * 5120
B_TOWER = (
    3841 * 1152
    + 27 * (4 * 1152 * 1152 + 4 * 1152 + 2 * 1152 * 4304 + 4304 + 5 * 1152)
    + (4_608 * 4_608 + 4_608 + 4_608 * 5_120 + 5_120)
    + 2 * 1152
)
B_STATES = 48 * (48 * 128 * 128 + 3 * 10_240) * 4
B_WORK = 2048 * (4 * 5120 + 2 * 17_408 + 2 * 12_288) * 2 + 1200 * (8 * 1152 + 4304) * 2 + 800_000_000
B_INT4 = (
    B_MATRICES // 2 + B_MATRICES // 128 * 2 + 2 * (B_REST + 2 * B_WORDS + B_TOWER)
    + 16 * 2 * 4 * 256 * 4096 * 2 + B_STATES + B_WORK
)  # fmt: skip
B_NVFP4 = (
    B_MATRICES // 2 + B_MATRICES // 16 + 2 * (B_REST + B_WORDS + B_TOWER) + B_WORDS // 2 + B_WORDS // 16
    + 16 * 2 * 4 * 256 * 4096 * 2 + B_STATES + B_WORK
)  # fmt: skip
B_DRAFT = B_ATTENTION + B_MLP + 2 * 5120 * 5120
B_MTP = B_NVFP4 + B_DRAFT // 2 + B_DRAFT // 16 + 2 * (2 * 5120 + 512 + 3 * 5120) + 2 * 4 * 256 * 4096 * 2

SERVER = 200_000_000  # what another server is reckoned to take beyond Edge-LLM's
# On a PC the words of TensorRT's model are looked up in the host's memory.
BY_HAND = {
    "orin-nano-8": (RM_NANO, S_NANO),
    "orin-nx-16": (RM_INT4, F_INT4),
    "orin-agx-32": (RM_FP16, N_INT4),
    "orin-agx-64": (RM_FP16, N_INT4, B_INT4),
    "thor": (RM_FP16, N_MTP, B_MTP),
    "x86-rtx-12": (RM_INT4 - 2 * RM_WORDS, F_INT4 + SERVER),
    "x86-rtx-24": (RM_FP16 - 2 * RM_WORDS, N_INT4 + SERVER),
    "spark": (RM_FP16, N_NVFP4, B_NVFP4),
    "cpu": (RM_CPU, VL2_CPU),
}
# Rounded, to be read: GB of each preset, and bytes left beside the system.
IN_GB = {
    "orin-nano-8": 6.55, "orin-nx-16": 11.55, "orin-agx-32": 20.33, "orin-agx-64": 40.52, "thor": 39.10,
    "x86-rtx-12": 10.98, "x86-rtx-24": 19.76, "spark": 38.69, "cpu": 12.34,
}  # fmt: skip


def preset_budget(name: str) -> Budget:
    return budget_of(BOARDS[name], preset_arrangement(BOARDS[name]))


@pytest.mark.parametrize("name", BOARDS)
def test_presets_by_hand(name: str) -> None:
    budget = preset_budget(name)
    parts = tuple(budget.need_of([part]) for part in budget.arrangement.parts)
    assert parts == BY_HAND[name]
    assert budget.need == sum(BY_HAND[name]) == sum(line.bytes for line in budget.lines)
    assert round(budget.need / 1e9, 2) == IN_GB[name]


@pytest.mark.parametrize("name", BOARDS)
def test_every_preset_fits_its_board(name: str) -> None:
    budget = preset_budget(name)
    assert budget.fits
    assert budget.need + BOARDS[name].share + budget.spare == BOARDS[name].memory
    assert {role for part in budget.arrangement.parts for role in part.roles} == {"orienter", "prm", "verifier"}


@pytest.mark.parametrize("name", BOARDS)
def test_presets_use_only_what_their_chips_have(name: str) -> None:
    board = BOARDS[name]
    for part in preset_arrangement(board).parts:
        kind = part.formats.decoder.partition("-")[0]
        assert kind in board.precisions
        assert all(kind in OF_SM[sm] for sm in board.sms)


def test_orin_has_neither_fp8_nor_nvfp4() -> None:
    assert OF_SM[87] == OF_SM[86] == ("fp16", "int8", "int4")
    assert "fp8" in OF_SM[89]
    assert "nvfp4" not in OF_SM[89]
    assert all("nvfp4" in OF_SM[sm] for sm in (110, 120, 121))
    for name in ("orin-nano-8", "orin-nx-16", "orin-agx-32", "orin-agx-64"):
        for arrangement in arrangements(BOARDS[name]):
            assert all(part.formats.decoder in ("fp16", "int4-fp16", "int4-awq") for part in arrangement.parts)


def test_the_papers_models_in_int4_do_not_fit_32_gb_and_the_preset_says_what_does() -> None:
    board = BOARDS["orin-agx-32"]
    paper = budget_of(board, find_arrangement(board, "paper-int4"))
    assert [part.model for part in paper.arrangement.parts] == ["Robometer-4B", "Qwen3.5-9B", "Qwen3.5-27B"]
    assert paper.need == RM_INT4 + N_INT4 + B_INT4 > 32 << 30  # not even with the system's share
    assert not paper.fits
    with pytest.raises(EnvironmentFault) as caught:
        check_fit(paper, board.usable, "memory")
    said = str(caught.value)
    assert "needs 35.30 GB, and there is 30.06 GB of memory: 5.23 GB too little." in said
    assert "What fits is '27b-int4'" in said
    assert "which needs 25.48 GB: set COMPASS_EDGE_ARRANGEMENT=27b-int4" in said
    assert preset_budget("orin-agx-32").fits
    assert PRESET["orin-agx-32"] == "9b"


def test_what_fits_is_the_largest_that_does() -> None:
    board = BOARDS["orin-nx-16"]
    assert [one.need for one in budgets(board)] == sorted((one.need for one in budgets(board)), reverse=True)
    best = alternative(board, board.usable)
    assert best is not None
    assert best.arrangement.name == "4b"
    assert alternative(board, 1_000_000_000) is None
    with pytest.raises(EnvironmentFault, match=r"No arrangement of orin-nx-16 fits that. Stop other programs"):
        check_fit(best, 1_000_000_000, "free memory")
    check_fit(best, best.need, "free memory")


def test_more_context_costs_what_it_must() -> None:
    small = Part(("orienter",), "Qwen3.5-9B", "edgellm", Formats("int4-awq"), Limits(4096, 2048))
    large = Part(("orienter",), "Qwen3.5-9B", "edgellm", Formats("int4-awq"), Limits(8192, 2048))
    board = BOARDS["orin-agx-64"]
    needs = [budget_of(board, Arrangement("one", (part,))).need for part in (small, large)]
    assert needs[1] - needs[0] == 8 * 2 * 4 * 256 * 4096 * 2


@pytest.mark.parametrize("row", [row for row in PUBLISHED if row.memory_gb], ids=lambda row: f"{row.board} {row.model}")
def test_the_arithmetic_meets_what_nvidia_published(row: Published) -> None:
    """Their memory is of an engine with a key-value cache of 4096; only the runtime's reserve was chosen by looking at them."""
    part = Part(("orienter",), row.model, "edgellm", Formats(row.precision), Limits(4096, 2048))
    board = BOARDS[row.board]
    arrangement = Arrangement("one", (part,))
    need = budget_of(board, arrangement).need / 1e9
    assert need == pytest.approx(row.memory_gb, rel=0.1)


def test_shapes_reproduce_published_parameter_counts() -> None:
    rows = json.loads(Path(shape.__file__).with_name("shapes.json").read_text())["models"]
    for row in rows:
        one = shapes()[row["name"]]
        assert row["source"]
        if "parameters" in row:
            assert one.parameters() == row["parameters"]
        if "parameters_with_mtp" in row:
            assert one.parameters(mtp=True) == row["parameters_with_mtp"]
    assert find_shape("Qwen3-VL-4B").parameters() == 4_437_815_808
    assert find_shape("Qwen3.5-4B").parameters() == 4_539_265_536
    assert find_shape("Qwen3.5-9B").parameters() == 9_409_813_744
    assert 2 * find_shape("Qwen3.5-27B").parameters(mtp=True) == pytest.approx(55.56e9, rel=1e-3)
    assert [one.name for one in shapes().values() if one.estimated] == ["Qwen3.5-0.8B"]


def test_estimates_are_marked() -> None:
    budget = preset_budget("orin-agx-64")
    assert {line.what for line in budget.lines if line.estimate} == {
        "activations", "attention scores", "tower's activations", "runtime",
    }  # fmt: skip
    nano = preset_budget("orin-nano-8")
    assert all(line.estimate for line in nano.lines if "Qwen3.5-0.8B" in line.part)


def test_formats_weigh_their_scales() -> None:
    assert FORMATS["fp16"].bytes(10) == 20
    assert FORMATS["int4-awq"].bytes(1280) == 640 + 10 * 2
    assert FORMATS["nvfp4"].bytes(1280) == 640 + 80
    assert FORMATS["int4"].bytes(33) == 17 + 2 * 4
    with pytest.raises(UsageError, match="There is no number format 'fp3'"):
        find_format("fp3")
    with pytest.raises(UsageError, match="The shape of the model 'GPT' is not known"):
        find_shape("GPT")
    with pytest.raises(UsageError, match=r"thor has no arrangement 'huge'. It has: paper"):
        find_arrangement(BOARDS["thor"], "huge")
