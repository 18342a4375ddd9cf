"""Expectations: latencies that NVIDIA published for TensorRT Edge-LLM. None of them was measured by us."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.boards.board import Board
from compass_edge.boards.part import Arrangement

SOURCE = (
    "published by NVIDIA for TensorRT Edge-LLM 0.10.0 with JetPack 7.2 and TensorRT 10.16, batch 1 "
    "(docs/source/user_guide/performance/performance-benchmarks.md); not measured by us"
)


@dataclass(frozen=True, slots=True)
class Published:
    board: str
    model: str
    precision: str
    prefill_ms: float  # 2048 tokens
    decode: float  # tokens a second
    vision_ms: float | None = None  # about 265 tokens
    mtp: float | None = None  # tokens a second with the model's own draft layer
    memory_gb: float | None = None  # of the GPU

    @property
    def sentence(self) -> str:
        parts = [f"prefill of 2048 tokens {self.prefill_ms:,.0f} ms"]
        if self.vision_ms is not None:
            parts.append(f"a picture {self.vision_ms:g} ms")
        parts.append(f"{self.decode:g} tokens/s" + (f", {self.mtp:g} with MTP" if self.mtp else ""))
        if self.memory_gb is not None:
            parts.append(f"{self.memory_gb:g} GB")
        return f"{self.model} in {self.precision}: {', '.join(parts)}"


PUBLISHED = (
    Published("thor", "Qwen3-VL-4B", "nvfp4", 62, 79, 11.6),
    Published("thor", "Qwen3-VL-4B", "int4-awq", 364, 83, 11.8),
    Published("thor", "Qwen3.5-9B", "nvfp4", 135, 41, 14.4, 88),
    Published("thor", "Qwen3.5-27B", "nvfp4", 447, 14.8, 14.4, 35),
    Published("orin-agx-64", "Qwen3-VL-4B", "int4-awq", 758, 55, 36.5, None, 6.1),
    Published("orin-agx-64", "Qwen3.5-9B", "int4-awq", 2140, 28, 49.7, None, 9.8),
    Published("orin-agx-64", "Qwen3.5-27B", "int4-awq", 6320, 10.6, 49.7, None, 19.9),
    Published("orin-nx-16", "Qwen3-VL-4B", "int4-awq", 1741, 32, 77, None, 6.0),
    Published("orin-nx-16", "Qwen3.5-4B", "int4-awq", 2776, 27, 73, None, 6.4),
    Published("orin-nano-8", "Qwen3-VL-2B", "int4-awq", 1017, 36, 141, None, 4.5),
    Published("spark", "Qwen3-VL-4B", "nvfp4", 122, 61),
    Published("spark", "Qwen3.5-9B", "nvfp4", 198, 34),
    Published("spark", "Qwen3.5-27B", "nvfp4", 607, 13),
)


def expectations(board: Board, arrangement: Arrangement) -> list[Published]:
    """Of its models, at their precision, on this very board; RoboMeter-4B has the shape of Qwen3-VL-4B and no numbers of its own."""
    wanted = {(part.model, part.formats.decoder) for part in arrangement.parts}
    return [row for row in PUBLISHED if row.board == board.name and (row.model, row.precision) in wanted]
