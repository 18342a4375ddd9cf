"""What RoboMeter's checkpoint has beside its weights: config.yaml of the experiment, and five tokens of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from compass_edge.engines.json_file import CONFIG_BYTES, read_bytes
from compass_edge.errors import IntegrityError, UsageError

# In the order in which they were added to the tokenizer: their ids depend on it.
TOKENS = ("<|split_token|>", "<|reward_token|>", "<|pref_token|>", "<|sim_token|>", "<|prog_token|>")
PROGRESS_TOKEN = TOKENS[-1]
_BINS = 10
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")


def progress_bins(folder: Path) -> int:
    """How many centres the progress head has, by config.yaml; a release without that file has ten.

    Refuses what the graph cannot do: frames as one video, one token for the whole clip, another loss.
    """
    path = folder / "config.yaml"
    if not path.exists():
        return _BINS
    values = _read(path)
    for name, wanted in (
        ("data.use_multi_image", True),
        ("model.use_per_frame_progress_token", True),
        ("loss.progress_loss_type", "discrete"),
    ):
        found = _value(values, name, path)
        if found is not None and found != wanted:
            raise UsageError(
                f"'{path}': {name} is {found!r}, and only {wanted!r} is known here, as in the released RoboMeter-4B."
            )
    bins = _value(values, "loss.progress_discrete_bins", path)
    bins = _BINS if bins is None else bins
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 2:
        raise UsageError(f"'{path}': loss.progress_discrete_bins must be a whole number above 1, and {bins!r} came.")
    return bins


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(read_bytes(path, CONFIG_BYTES))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise IntegrityError(f"'{path}' must be YAML, and it does not parse: {said}. Fetch it again.") from error
    if not isinstance(values, dict):
        raise IntegrityError(f"'{path}' must hold the sections of an experiment, and it holds none. Fetch it again.")
    return values


def _value(values: dict[str, Any], name: str, path: Path) -> Any:
    """A setting by its dotted name; one that refers to another (`${loss.bins}`) is followed."""
    for _ in range(8):
        found: Any = values
        for key in name.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        reference = _REFERENCE.fullmatch(found) if isinstance(found, str) else None
        if reference is None:
            return found
        name = reference[1]
    raise IntegrityError(f"'{path}': the setting {name} refers to itself. Fetch the file again.")
