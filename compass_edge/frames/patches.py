"""The preprocessing of each model family, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compass_edge.errors import UsageError
from compass_edge.frames.native import native

if TYPE_CHECKING:
    from compass_edge._native import Preprocessor

_HALF = (0.5, 0.5, 0.5)
_QWEN3: dict[str, Any] = {"patch": 16, "min_pixels": 65536, "max_pixels": 16777216, "mean": _HALF, "std": _HALF}
_QWEN2: dict[str, Any] = {
    "patch": 14,
    "min_pixels": 3136,
    "max_pixels": 12845056,
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
}

# As in each family's preprocessor_config.json; all merge 2 x 2 patches and repeat a still once.
FAMILIES: dict[str, dict[str, Any]] = {"qwen3-vl": _QWEN3, "qwen3.5": _QWEN3, "qwen2.5-vl": _QWEN2, "qwen2-vl": _QWEN2}


def preprocessor_for(family: str, *, dtype: str = "f16", **changes: Any) -> Preprocessor:
    """A Preprocessor as `family` expects it; `changes` override single settings, e.g. max_pixels."""
    if family not in FAMILIES:
        raise UsageError(f"Expected a model family of {', '.join(FAMILIES)}, got '{family}'.")
    made: Preprocessor = native().Preprocessor(dtype=dtype, **{**FAMILIES[family], **changes})
    return made
