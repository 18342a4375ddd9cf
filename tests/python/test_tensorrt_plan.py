"""The plan by hand: which buffers, how large, what is copied where; and slots that never lose a frame in use."""

from __future__ import annotations

import pytest

from compass_edge.engines.engine_record import EngineRecord, Tensor
from compass_edge.engines.tensorrt.plan import FEATURES, Move, Pass, Placed, Plan
from compass_edge.engines.tensorrt.slots import Slots
from compass_edge.errors import UsageError

pytestmark = pytest.mark.tensorrt
HIDDEN = 64
TOKEN = 2 * HIDDEN  # bytes


def record(part: str, profile: dict[str, tuple[int, int, int]], **tensors: Tensor) -> EngineRecord:
    return EngineRecord(part, "sm_86", "tensorrt-rtx", "1", "fp16", profile, tensors, 1, "0" * 64, "0" * 64)


def plan(*, taps: int = 2, dtype: str = "float16", slots_bytes: int = 0) -> Plan:
    vision = {
        "patches": Tensor(True, "float16", ("F", "P", 48)),
        "cos": Tensor(True, "float16", ("P", 8)),
        "features": Tensor(False, "float16", ("F", "M", HIDDEN)),
    }
    decoder = {
        "embeddings": Tensor(True, dtype, ("B", "S", HIDDEN)),
        "positions": Tensor(True, "int64", (3, "B", "S")),
        "wanted": Tensor(True, "int64", ("B", "N")),
        "progress": Tensor(False, "float32", ("B", "N")),
    }
    if taps:
        vision["taps"] = Tensor(False, "float16", (taps, "F", "M", HIDDEN))
        decoder["taps"] = Tensor(True, dtype, (taps, "B", "S", HIDDEN))
    return Plan(
        record("vision", {"F": (1, 4, 4), "P": (4, 32, 32), "M": (1, 8, 8)}, **vision),
        record("decoder", {"B": (1, 2, 2), "S": (1, 100, 150), "N": (1, 1, 6)}, **decoder),
        2,
        slots_bytes,
    )


def test_buffers_are_as_large_as_the_profiles_maximum() -> None:
    memory = plan().memory()
    assert memory.buffers == {
        "vision.patches": 4 * 32 * 48 * 2,
        "vision.cos": 32 * 8 * 2,
        "vision.features": 4 * 8 * TOKEN,
        "vision.taps": 2 * 4 * 8 * TOKEN,
        "decoder.embeddings": 2 * 150 * TOKEN,
        "decoder.positions": 7424,  # 3 x 2 x 150 x 8 bytes are 7200: to the next 256
        "decoder.wanted": 256,
        "decoder.progress": 256,
        "decoder.taps": 2 * 2 * 150 * TOKEN,
        FEATURES: 8 * 3 * 8 * TOKEN,  # batch x frames slots of a frame and its taps
    }
    assert memory.bytes == sum(memory.buffers.values())
    assert set(memory.buffers) - set(memory.staging) == {"vision.taps", "decoder.taps", FEATURES}


def test_slots_fill_what_they_may() -> None:
    assert plan().slots == 8
    assert plan(slots_bytes=20 * 3 * 8 * TOKEN + 1).slots == 20


def test_the_tower_gives_into_slots_frame_by_frame() -> None:
    made = plan()
    run = made.tower(2, 16)  # four tokens a frame
    assert run == Pass.of("vision", F=2, P=16, M=4)
    slot, frame = 3 * 8 * TOKEN, 4 * TOKEN
    assert made.kept(run, [5, 1]) == [
        Move("copy", "vision.features", 0, FEATURES, 5 * slot, frame),
        Move("copy", "vision.taps", 0, FEATURES, 5 * slot + 8 * TOKEN, frame),
        Move("copy", "vision.taps", 2 * frame, FEATURES, 5 * slot + 16 * TOKEN, frame),
        Move("copy", "vision.features", frame, FEATURES, slot, frame),
        Move("copy", "vision.taps", frame, FEATURES, slot + 8 * TOKEN, frame),
        Move("copy", "vision.taps", 3 * frame, FEATURES, slot + 16 * TOKEN, frame),
    ]
    assert made.features_at(5, 4) == (5 * slot, frame)


def test_a_prompt_is_put_together_of_words_and_slots() -> None:
    made = plan(taps=1)
    run = made.prefill([10, 70], 3)
    assert run == Pass.of("decoder", B=2, S=128, N=4)
    row, slot = 128 * TOKEN, 2 * 8 * TOKEN
    assert made.filled(run, [10, 70], [[Placed(2, 4, 6)], []]) == [
        Move("clear", "", 0, "decoder.taps", 0, 2 * row),
        Move("upload", "decoder.embeddings", 0, "decoder.embeddings", 0, 2 * TOKEN),
        Move("copy", FEATURES, 6 * slot, "decoder.embeddings", 2 * TOKEN, 4 * TOKEN),
        Move("copy", FEATURES, 6 * slot + 8 * TOKEN, "decoder.taps", 2 * TOKEN, 4 * TOKEN),
        Move("upload", "decoder.embeddings", 6 * TOKEN, "decoder.embeddings", 6 * TOKEN, 4 * TOKEN),
        Move("clear", "", 0, "decoder.embeddings", 10 * TOKEN, 118 * TOKEN),
        Move("upload", "decoder.embeddings", row, "decoder.embeddings", row, 70 * TOKEN),
        Move("clear", "", 0, "decoder.embeddings", row + 70 * TOKEN, 58 * TOKEN),
    ]


def test_pictures_at_both_ends_leave_no_empty_moves() -> None:
    made = plan(taps=0)
    moves = made.filled(made.prefill([64], 1), [64], [[Placed(0, 8, 0), Placed(8, 8, 1), Placed(56, 8, 0)]])
    assert [(move.kind, move.to // TOKEN, move.count // TOKEN) for move in moves] == [
        ("copy", 0, 8),
        ("copy", 8, 8),
        ("upload", 16, 40),
        ("copy", 56, 8),
    ]


@pytest.mark.parametrize(
    ("length", "wanted", "axes"),
    [(1, 1, (64, 1)), (64, 2, (64, 2)), (65, 3, (128, 4)), (129, 5, (150, 6)), (150, 6, (150, 6))],
)
def test_few_shapes_and_never_more_than_the_profile_has(length: int, wanted: int, axes: tuple[int, int]) -> None:
    assert plan().prefill([length], wanted) == Pass.of("decoder", B=1, S=axes[0], N=axes[1])


def test_what_is_larger_than_the_engine_is_refused_with_the_cure() -> None:
    made = plan()
    with pytest.raises(UsageError, match=r"36 patches came.*32 at most.*--frame WIDTHxHEIGHT"):
        made.tower(1, 36)
    with pytest.raises(UsageError, match=r"151 tokens came.*150 at most"):
        made.prefill([151], 1)
    with pytest.raises(UsageError, match=r"at 7 places.*6 at most"):
        made.prefill([150], 7)


def test_parts_of_two_float_types_are_refused() -> None:
    with pytest.raises(UsageError, match=r"tower gives float16 and the decoder reads float32.*--vision fp16"):
        plan(dtype="float32")


def test_a_frame_in_use_keeps_its_slot() -> None:
    slots = Slots(2)
    slots.use({"a", "b"})
    for key in ("a", "b"):
        slots.put(key, slots.take())
    with pytest.raises(UsageError, match=r"more different frames than the device has room for, which is 2"):
        slots.take()
    slots.use({"a", "c"})
    slots.put("c", slots.take())
    assert slots.get("b") is None
    assert {slots.get("a"), slots.get("c")} == {0, 1}
    slots.clear()
    assert (len(slots), slots.free) == (0, 2)


def test_the_frame_unused_for_longest_gives_way() -> None:
    slots = Slots(2)
    for key in ("a", "b"):
        slots.put(key, slots.take())
    slots.get("a")
    slots.put("c", slots.take())
    assert slots.get("b") is None
    assert slots.get("a") is not None
    taken = slots.take()
    slots.give_back([taken])
    assert slots.free == 1
