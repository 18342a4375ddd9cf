"""The boards that presets are written for."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.errors import UsageError

GIB = 1 << 30
_AMPERE = ("fp16", "int8", "int4")
_ADA = (*_AMPERE, "fp8")
_BLACKWELL = (*_ADA, "nvfp4")


@dataclass(frozen=True, slots=True)
class Board:
    """`share` is an estimate: what the system, its carve-outs and the robot's other programs take of the memory."""

    name: str
    about: str
    arch: str  # of its CPU
    sms: tuple[int, ...]  # compute capabilities of its GPU, times ten; a class of cards has several
    memory: int  # bytes that its GPU can use: all of them where CPU and GPU share them, else the card's
    share: int
    unified: bool
    precisions: tuple[str, ...]  # of arithmetic that the GPU has, in all its variants
    bandwidth: float | None = None  # GB/s, where one number holds for every such board

    @property
    def usable(self) -> int:
        return self.memory - self.share


def _jetson(name: str, about: str, memory: int, share: float, bandwidth: float | None) -> Board:
    return Board(name, about, "aarch64", (87,), memory * GIB, int(share * GIB), True, _AMPERE, bandwidth)


_ALL = (
    # 68 or 102 GB/s, by its power mode: no one number.
    _jetson("orin-nano-8", "Jetson Orin Nano, 8 GB", 8, 1.5, None),
    _jetson("orin-nx-16", "Jetson Orin NX, 16 GB", 16, 2.5, 102.4),
    _jetson("orin-agx-32", "Jetson AGX Orin, 32 GB", 32, 4, 204.8),
    _jetson("orin-agx-64", "Jetson AGX Orin, 64 GB", 64, 6, 204.8),
    Board("thor", "Jetson AGX Thor, 128 GB", "aarch64", (110,), 128 * GIB, 10 * GIB, True, _BLACKWELL, 273.0),
    Board(
        "x86-rtx-12", "PC with an RTX card of 12 GB", "x86_64", (86, 89, 120), 12 * GIB, GIB // 2, False, _AMPERE, None
    ),
    Board(
        "x86-rtx-24", "PC with an RTX card of 24 GB", "x86_64", (86, 89, 120), 24 * GIB, GIB // 2, False, _AMPERE, None
    ),
    Board("spark", "DGX Spark, 128 GB", "aarch64", (121,), 128 * GIB, 10 * GIB, True, _BLACKWELL, 273.0),
    Board(
        "cpu",
        "any computer of 16 GB, without its GPU",
        "any",
        (),
        16 * GIB,
        3 * GIB,
        True,
        ("fp32", "int8", "int4"),
        None,
    ),
)
BOARDS: dict[str, Board] = {board.name: board for board in _ALL}
# The same by card: those of sm_86 lack what those of sm_120 have, and a preset must run on all of its class.
OF_SM: dict[int, tuple[str, ...]] = {
    80: _AMPERE, 86: _AMPERE, 87: _AMPERE, 89: _ADA, 90: _ADA, 100: _BLACKWELL, 110: _BLACKWELL, 120: _BLACKWELL,
    121: _BLACKWELL,
}  # fmt: skip


def find_board(name: str) -> Board:
    if name not in BOARDS:
        raise UsageError(f"There is no board '{name}'. There are: {', '.join(BOARDS)}.")
    return BOARDS[name]
