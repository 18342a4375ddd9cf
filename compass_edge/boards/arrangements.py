"""The arrangements of each board, the largest first. The preset is the one that `PRESET` names; the others are its alternatives.

The paper's own is RoboMeter-4B, Qwen3.5-9B as Verifier and Qwen3.5-27B as Orienter. Where that does not fit, one smaller model
plays both roles: it is loaded once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from compass_edge.boards.board import BOARDS, Board
from compass_edge.boards.part import PRM_CONTEXT, Arrangement, Engine, Formats, Limits, Part

# An Orin writes ten tokens of 27B a second, by NVIDIA's numbers: it may plan there, and verifying is left to 9B.
PRESET: dict[str, str] = {
    "orin-nano-8": "0.8b",
    "orin-nx-16": "4b",
    "orin-agx-32": "9b",
    "orin-agx-64": "paper",
    "thor": "paper",
    "x86-rtx-12": "4b",
    "x86-rtx-24": "9b",
    "spark": "paper",
    "cpu": "2b",
}
_ONE = {"27b": "Qwen3.5-27B", "9b": "Qwen3.5-9B", "4b": "Qwen3.5-4B", "2b": "Qwen3-VL-2B", "0.8b": "Qwen3.5-0.8B"}
_VLM = Limits(context=4096, prompt=2048)
_SMALL_VLM = Limits(context=2048, prompt=1536)
_CPU_VLM = Limits(context=2048, prompt=1536, rows=2, frames=8)
_SNAPSHOTS = 128 << 20
_PRM = Limits(context=PRM_CONTEXT, prompt=PRM_CONTEXT, rows=0, frames=64, pictures=4)
_SMALL_PRM = replace(_PRM, frames=16, pictures=1)
_SMALL_PRM_FORMATS = Formats("int4-fp16", embedding="int8")
_CPU_PRM = Limits(context=PRM_CONTEXT, prompt=PRM_CONTEXT, rows=2, frames=32)

_INT4 = Formats("int4-awq")
_INT4_SMALL = Formats("int4-awq", head="int4-awq")
_NVFP4 = Formats("nvfp4", head="nvfp4")
_CPU = Formats("int4", head="int4", embedding="int8", vision="fp32", cache="fp32")


def arrangements(board: Board) -> tuple[Arrangement, ...]:
    return _arrangements(board.name)


def preset_arrangement(board: Board) -> Arrangement:
    return next(one for one in arrangements(board) if one.name == PRESET[board.name])


@cache
def _arrangements(name: str) -> tuple[Arrangement, ...]:
    if name == "cpu":
        return tuple(_one_model(size, _cpu_vlm, _cpu_prm()) for size in ("4b", "2b", "0.8b"))
    roomy = name in ("orin-agx-64", "thor", "spark")
    small = name == "orin-nano-8"
    full = _prm("fp16")
    slim = _prm("int4-fp16")
    if small:
        slim = replace(slim, formats=_SMALL_PRM_FORMATS, limits=_SMALL_PRM)
    prm = full if roomy or name in ("orin-agx-32", "x86-rtx-24") else slim

    def vlm(model: str, *roles: str) -> Part:
        return _vlm(name, model, roles)

    made = [_paper(vlm, prm)] if prm is slim else [_paper(vlm, prm), _paper(vlm, slim, "paper-int4")]
    made += [_one_model(size, vlm, prm) for size in _ONE]
    if prm is not slim:
        made += [_one_model(size, vlm, slim, f"{size}-int4") for size in _ONE]
    return tuple(made)


def _paper(vlm: Callable[..., Part], prm: Part, name: str = "paper") -> Arrangement:
    return Arrangement(name, (prm, vlm("Qwen3.5-9B", "verifier"), vlm("Qwen3.5-27B", "orienter")))


def _one_model(size: str, vlm: Callable[..., Part], prm: Part, name: str = "") -> Arrangement:
    return Arrangement(name or size, (prm, vlm(_ONE[size], "orienter", "verifier")))


def _vlm(board: str, model: str, roles: tuple[str, ...]) -> Part:
    blackwell = "nvfp4" in BOARDS[board].precisions
    small = board == "orin-nano-8"
    engine: Engine = "server" if board.startswith("x86") else "edgellm"  # which server, the card decides
    formats = _NVFP4 if blackwell else _INT4_SMALL if small else _INT4
    # NVIDIA publishes numbers with MTP for Thor and none for Orin.
    mtp = board == "thor" and model.startswith("Qwen3.5")
    return Part(roles, model, engine, formats, _SMALL_VLM if small else _VLM, mtp)  # type: ignore[arg-type]


def _prm(decoder: str) -> Part:
    return Part(("prm",), "Robometer-4B", "tensorrt", Formats(decoder), _PRM)


def _cpu_vlm(model: str, *roles: str) -> Part:
    limits = replace(_CPU_VLM, snapshots=_SNAPSHOTS) if model.startswith("Qwen3.5") else _CPU_VLM
    return Part(roles, model, "onnx", _CPU, limits)  # type: ignore[arg-type]


def _cpu_prm() -> Part:
    return Part(("prm",), "Robometer-4B", "onnx", _CPU, _CPU_PRM)
