"""The chips that engines are built for, and which TensorRT builds for them where."""

from __future__ import annotations

from dataclasses import dataclass

from compass_edge.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    name: str  # "sm_86"
    flavour: str  # "tensorrt-rtx": ahead of time, anywhere; "tensorrt": on the device itself
    boards: str
    fp8: bool  # whether its tensor cores have it

    @property
    def ahead(self) -> bool:
        return self.flavour == "tensorrt-rtx"

    @property
    def capability(self) -> str:
        """As TensorRT-RTX spells it."""
        return self.name.replace("sm_", "SM")


TARGETS = {
    target.name: target
    for target in (
        Target("sm_80", "tensorrt-rtx", "A100, A30", fp8=False),
        Target("sm_86", "tensorrt-rtx", "RTX 30xx, RTX A2000 to A6000, A10", fp8=False),
        Target("sm_87", "tensorrt", "Jetson Orin with JetPack 7", fp8=False),
        Target("sm_89", "tensorrt-rtx", "RTX 40xx, RTX Ada, L4", fp8=True),
        Target("sm_110", "tensorrt", "Jetson Thor with JetPack 7", fp8=True),
        Target("sm_120", "tensorrt-rtx", "RTX 50xx, RTX PRO Blackwell", fp8=True),
        Target("sm_121", "tensorrt-rtx", "DGX Spark", fp8=True),
    )
}


def target_of(name: str) -> Target:
    """By sm_86, sm86, 86 or 8.6."""
    digits = name.lower().removeprefix("sm").removeprefix("_").replace(".", "")
    found = TARGETS.get(f"sm_{digits}")
    if found is None:
        known = "; ".join(f"{target.name} ({target.boards})" for target in TARGETS.values())
        raise UsageError(f"A target is one of {known}, and '{name}' came.")
    return found
