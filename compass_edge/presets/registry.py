"""The registry: presets by name. A package for another board adds its own with `join`."""

from __future__ import annotations

from compass_edge.errors import UsageError
from compass_edge.presets import tiny
from compass_edge.presets.boards import BOARD_PRESETS
from compass_edge.presets.preset import Preset

PRESETS: dict[str, Preset] = {tiny.PRESET.name: tiny.PRESET, **BOARD_PRESETS}


def join(preset: Preset) -> None:
    if preset.name in PRESETS:
        raise UsageError(f"There is a preset '{preset.name}' already. Give yours another name.")
    PRESETS[preset.name] = preset


def find_preset(name: str) -> Preset:
    if name not in PRESETS:
        raise UsageError(f"There is no preset '{name}'. There are: {', '.join(PRESETS)}.")
    return PRESETS[name]
