"""What an export is asked for: which parts, in which dialect, at which precision."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from compass_edge.errors import UsageError

Weights = Literal["float", "int8", "int8-block", "int4", "fp8"]


@dataclass(frozen=True, slots=True)
class Precision:
    """How a part's matrices are kept, and what it computes in between.

    int8: a scale a row and, for ONNX Runtime, a scale a token: whole numbers are multiplied, the fastest on a CPU;
    int8-block, int4: a scale a block of `Recipe.block` weights. ONNX Runtime's kernel rounds activations to 8 bits by block;
    fp8: E4M3 for TensorRT, a scale a row. Activations are rounded too, where the weights before them bound them: then nothing is ever
    cut off and nothing has to be calibrated. Matrices whose input has no such bound (the second of an MLP) stay in float16.
    """

    weights: Weights
    half: bool  # activations, states and what is not a matrix in float16 instead of float32


PRECISIONS: dict[str, Precision] = {
    "fp32": Precision("float", False),
    "fp16": Precision("float", True),
    "int8": Precision("int8", False),
    "int8-block": Precision("int8-block", False),
    "int4": Precision("int4", False),
    "int8-block-fp16": Precision("int8-block", True),
    "int4-fp16": Precision("int4", True),
    "fp8": Precision("fp8", True),
}
DIALECTS = ("ort", "standard")
KINDS = ("auto", "vlm", "robometer")
EMBEDDINGS = ("fp32", "fp16", "int8")


@dataclass(frozen=True, slots=True)
class Recipe:
    kind: str = "auto"
    dialect: str = "ort"
    vision: str = "fp32"
    embedding: str = "fp16"
    decoder: str = "int8"
    block: int = 32  # weights that share a scale
    positions: int = 32768  # the longest sequence that the graph's rotation table knows

    def __post_init__(self) -> None:
        for name, allowed in (
            ("kind", KINDS),
            ("dialect", DIALECTS),
            ("vision", tuple(PRECISIONS)),
            ("embedding", EMBEDDINGS),
            ("decoder", tuple(PRECISIONS)),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(f"{name} must be one of {', '.join(allowed)}, and '{getattr(self, name)}' came.")
        if self.vision == "fp8":
            raise UsageError("The vision tower is small and stays in fp16: fp8 is a precision of the decoder alone.")
        if self.decoder == "fp8" and self.dialect != "standard":
            raise UsageError(
                "fp8 is for TensorRT, which takes the dialect standard: add --dialect standard, or choose int8."
            )
        if self.block not in (16, 32, 64, 128):
            raise UsageError(f"block must be 16, 32, 64 or 128 weights, and {self.block} came.")
        if not 512 <= self.positions <= 1 << 20:
            raise UsageError(f"positions must be from 512 to {1 << 20}, and {self.positions} came.")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
