"""How a checkpoint wants its pictures: its preprocessor_config.json over what its family usually has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compass_edge.engines.architecture import Tower
from compass_edge.engines.json_file import read_object_if_there
from compass_edge.errors import UsageError
from compass_edge.export.families import Family
from compass_edge.frames.native import native
from compass_edge.frames.patches import FAMILIES

_ROBOMETER_LEAST = 4  # decoder tokens a frame; its own code resizes by this instead of the processor's


def preprocessing_of(family: Family, tower: Tower, folder: Path, *, robometer: bool) -> dict[str, Any]:
    """Arguments of compass_edge._native.Preprocessor, but for the type that it gives."""
    settings = {**FAMILIES[family.name], "patch": tower.patch, "merge": tower.merge, "temporal": tower.temporal}
    path = folder / "preprocessor_config.json"
    given = read_object_if_there(path)
    size = given.get("size")
    if not isinstance(size, dict):
        size = {}
    for ours, theirs, edge in (
        ("min_pixels", "min_pixels", "shortest_edge"),
        ("max_pixels", "max_pixels", "longest_edge"),
    ):
        value = given.get(theirs, size.get(edge))
        if value is not None:
            settings[ours] = _pixels(value, theirs, path)
    for ours, theirs in (("mean", "image_mean"), ("std", "image_std")):
        if given.get(theirs) is not None:
            settings[ours] = _colours(given[theirs], theirs, path)
    for ours, theirs in (("patch", "patch_size"), ("merge", "merge_size"), ("temporal", "temporal_patch_size")):
        if given.get(theirs, settings[ours]) != settings[ours]:
            raise UsageError(
                f"'{path}': {theirs} is {given[theirs]!r}, and by config.json the tower has {settings[ours]}. The files are of two "
                "models: fetch both from the same place."
            )
    if robometer:
        settings["min_pixels"] = _ROBOMETER_LEAST * (tower.patch * tower.merge) ** 2
    if settings["min_pixels"] > settings["max_pixels"]:
        raise UsageError(
            f"'{path}': a picture must have at least {settings['min_pixels']} pixels and at most {settings['max_pixels']}, and "
            "none has both. Fetch the file again."
        )
    try:
        native().Preprocessor(
            **{**settings, "mean": tuple(settings["mean"]), "std": tuple(settings["std"])}, dtype="f32"
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"'{path}' asks for a preprocessing that cannot be done: {error}") from error
    for name in ("mean", "std"):
        settings[name] = list(settings[name])
    return settings


def _pixels(value: Any, name: str, path: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"'{path}': {name} must be a number of pixels, and {value!r} came. Fetch the file again.")
    return value


def _colours(value: Any, name: str, path: Path) -> list[float]:
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(one, int | float) for one in value):
        raise UsageError(f"'{path}': {name} must be three numbers, and {value!r} came. Fetch the file again.")
    return [float(one) for one in value]
