"""How numbers are kept, and what so many of them weigh."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.errors import UsageError


@dataclass(frozen=True, slots=True)
class NumberFormat:
    name: str
    bits: int
    block: int = 0  # weights that share a scale; 0: a scale a row or a matrix, less than one part in a thousand
    scale_bits: int = 0

    def weights(self, count: int) -> int:
        return -(-count * self.bits // 8)

    def scales(self, count: int) -> int:
        return -(-count // self.block) * self.scale_bits // 8 if self.block else 0

    def bytes(self, count: int) -> int:
        return self.weights(count) + self.scales(count)


_ALL = (
    NumberFormat("fp32", 32),
    NumberFormat("fp16", 16),
    NumberFormat("fp8", 8),
    NumberFormat("int8", 8),
    NumberFormat("int4", 4, 32, 32),  # of `models export --precision int4`: scales in fp32
    NumberFormat("int4-fp16", 4, 32, 16),  # of `--precision int4-fp16`
    NumberFormat("int4-awq", 4, 128, 16),  # of TensorRT Edge-LLM's quantizer, and of most AWQ checkpoints
    NumberFormat("nvfp4", 4, 16, 8),
)
FORMATS: dict[str, NumberFormat] = {one.name: one for one in _ALL}


def find_format(name: str) -> NumberFormat:
    if name not in FORMATS:
        raise UsageError(f"There is no number format '{name}'. There are: {', '.join(FORMATS)}.")
    return FORMATS[name]
