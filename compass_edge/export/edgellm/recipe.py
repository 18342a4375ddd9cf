"""A recipe: to what a checkpoint is quantized for a board, and what its export has besides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import OF_SM, Board
from compass_edge.engines.edgellm.command_line import QUANTIZATIONS
from compass_edge.engines.json_file import read_object
from compass_edge.errors import UsageError
from compass_edge.export.checkpoint import Checkpoint

# Model types of config.json that Edge-LLM 0.11 takes and that compass-edge has prompts for.
FAMILIES = ("qwen3_vl", "qwen3_5")
PRECISIONS = tuple(QUANTIZATIONS)
_ARITHMETIC = {"int4-awq": "int4", "fp8": "fp8", "nvfp4": "nvfp4"}
# What hf_quant_config.json says of a checkpoint that was quantized so.
ALGORITHMS = {"int4_awq": "W4A16_AWQ", "fp8": "FP8", "nvfp4": "NVFP4"}
MIXED = "MIXED_PRECISION"


@dataclass(frozen=True, slots=True)
class Recipe:
    quantization: str
    head: str | None = None
    mtp: bool = False
    externalize: tuple[str, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "quantization": self.quantization,
            "head": self.head,
            "mtp": self.mtp,
            "externalize": list(self.externalize),
        }


def recipe_for(board: Board, checkpoint: Checkpoint, precision: str | None = None) -> Recipe:
    """The board's own precision unless another is asked for that its chips can compute."""
    if not board.sms:
        raise UsageError(
            f"TensorRT Edge-LLM needs an NVIDIA GPU, and the board {board.name} is without one. Make a model for ONNX Runtime: "
            "`compass-edge models export`."
        )
    formats = preset_arrangement(board).part("verifier").formats
    chosen = precision or formats.decoder
    if chosen not in QUANTIZATIONS:
        raise UsageError(f"TensorRT Edge-LLM quantizes to {', '.join(PRECISIONS)}, and '{chosen}' came.")
    able = set.intersection(*(set(OF_SM[sm]) for sm in board.sms)) if precision is None else _any_of(board)
    if _ARITHMETIC[chosen] not in able:
        raise UsageError(
            f"The GPU of {board.name} ({board.about}) computes in {', '.join(sorted(able))}, and {chosen} was asked for. Leave "
            f"--precision out: it takes {formats.decoder}."
        )
    quantization = QUANTIZATIONS[chosen]
    head = QUANTIZATIONS.get(formats.head) if chosen == formats.decoder else None
    mtp = board.name == "thor" and has_mtp(checkpoint)
    # Weights outside the engine are read by the kernels of Orin as they lie in memory: the engine build needs less of it.
    externalize = ("int4_ffn",) if quantization == "int4_awq" and board.sms == (87,) else ()
    return Recipe(quantization, head, mtp, externalize)


def has_mtp(checkpoint: Checkpoint) -> bool:
    """Whether the model's own draft layer is there: many copies declare it and leave its weights out."""
    text = checkpoint.config.get("text_config", checkpoint.config)
    declared = isinstance(text, dict) and bool(text.get("mtp_num_hidden_layers"))
    return declared and any(name.startswith("mtp.") or ".mtp." in name for name in checkpoint.names())


def check_family(checkpoint: Checkpoint) -> str:
    family = checkpoint.config.get("model_type")
    if family not in FAMILIES:
        raise UsageError(
            f"'{checkpoint.folder}' must be a checkpoint of {' or '.join(FAMILIES)}, and its config.json says {family!r}. Reward "
            "models go another way: `compass-edge models export` and `models build`."
        )
    _check_no_code(checkpoint.folder)
    return str(family)


def _check_no_code(folder: Path) -> None:
    """Edge-LLM has transformers run whatever Python a checkpoint names as its own. These families need none."""
    named = [path.name for path in sorted(folder.glob("*.py"))]
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith("config.json") and "auto_map" in read_object(path):
            named.append(f"auto_map in {path.name}")
    if named:
        raise UsageError(
            f"'{folder}' must be weights and configuration, and brings code of its own ({', '.join(named)}), which NVIDIA's tools "
            "would run. Take the checkpoint as its makers published it, or remove the code from the folder."
        )


def quantized_as(folder_quantization: dict[str, Any]) -> str:
    """The algorithm that hf_quant_config.json names."""
    told = folder_quantization.get("quantization")
    return str(told.get("quant_algo") or "") if isinstance(told, dict) else ""


def _any_of(board: Board) -> set[str]:
    """A class of cards: what is asked for by name must be there in one of them."""
    return set[str]().union(*(OF_SM[sm] for sm in board.sms))
