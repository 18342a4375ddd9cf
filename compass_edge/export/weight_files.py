"""Which files of a checkpoint's folder hold its weights, or the sentence about why there are none to be used."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from compass_edge.errors import CompassError, IntegrityError, UsageError

INDEX = "model.safetensors.index.json"
_WHOLE = "model.safetensors"
_ADAPTER = "adapter_model.safetensors"
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_JSON_LIMIT = 64 << 20
_LAYOUT = "A checkpoint is a folder with config.json and safetensors, as model hubs have them"


def require_folder(path: Path) -> None:
    """A sentence for everything that is named in place of a checkpoint's folder."""
    if path.is_dir():
        return
    if not path.exists():
        raise UsageError(f"There is no folder '{path}'. {_LAYOUT}; fetch it first, then name the folder.")
    if path.suffix == ".safetensors" or path.name in (INDEX, "config.json"):
        raise UsageError(f"'{path}' is one file of a checkpoint: name the folder that it is in.")
    refused = _refused([path])
    raise UsageError(refused or f"'{path}' is a file. {_LAYOUT}: name the folder.")


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file of the checkpoint that holds one object."""
    try:
        size = path.stat().st_size
        if size > _JSON_LIMIT:
            raise IntegrityError(
                f"'{path}' has {size} bytes; no such file of a checkpoint is that large. Fetch it again."
            )
        value = json.loads(path.read_bytes().decode())
    except OSError as error:
        raise CompassError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"'{path}' is not valid JSON: {error}. The file is damaged: fetch it again.") from error
    if not isinstance(value, dict):
        raise UsageError(f"'{path}' should hold a JSON object, and it holds a {type(value).__name__}. {_LAYOUT}.")
    return value


def weight_files(folder: Path) -> tuple[list[Path], dict[str, str]]:
    """The safetensors files in order of name, and where the index says that each tensor is (empty without an index)."""
    index = folder / INDEX
    if index.exists():
        places = _index(index)
        names = sorted(set(places.values()))
        if (folder / _WHOLE).exists() and _WHOLE not in names:
            raise UsageError(
                f"'{folder}' has weights twice: {_WHOLE}, and the shards that {INDEX} names. Remove the ones that are not meant."
            )
        for name in names:
            if not (folder / name).exists():
                raise IntegrityError(
                    f"'{index}' names the shard {name}, and it is not there. Fetch the checkpoint again."
                )
        return [folder / name for name in names], places
    if (folder / _WHOLE).exists():
        return [folder / _WHOLE], {}
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        everything = sorted(folder.iterdir())
        raise UsageError(
            _refused(everything)
            or f"'{folder}' has no weights: {'it is empty' if not everything else 'no safetensors file is in it'}. {_LAYOUT}."
        )
    if [path.name for path in found] == [_ADAPTER]:
        raise UsageError(
            f"'{folder}' holds an adapter ({_ADAPTER}) without the model that it adapts. Merge the two and save the result."
        )
    _check_all_there(found)
    return found, {}


def _index(path: Path) -> dict[str, str]:
    places = read_object(path).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise IntegrityError(f"'{path}' should have a weight_map with a file for each tensor. Fetch it again.")
    for tensor, name in places.items():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise IntegrityError(
                f"'{path}' puts the tensor '{tensor}' into {name!r}; it must be a safetensors file beside it. Fetch it again."
            )
    return places


def _check_all_there(found: list[Path]) -> None:
    """Shards carry their number and count in the name: without an index this is all that tells that one is missing."""
    names = {path.name for path in found}
    for path in found:
        if shard := _SHARD.fullmatch(path.name):
            for number in range(1, int(shard["count"]) + 1):
                name = f"{shard['stem']}-{number:05}-of-{shard['count']}.safetensors"
                if name not in names:
                    raise IntegrityError(
                        f"'{path}' is one of {int(shard['count'])} shards, and {name} is not there. Fetch the checkpoint again."
                    )


def _refused(files: list[Path]) -> str | None:
    """Why these are not weights that can be used; the first kind that is found speaks."""
    for path in files:
        if path.suffix in _PICKLES:
            return (
                f"'{path}' is a pickle. Loading a pickle runs whatever code is in it, so it is never opened here. Convert the "
                "checkpoint to safetensors on a machine that you can afford to lose, or take a release that has them."
            )
    for suffix, kind in ((".gguf", "a GGUF file"), (".onnx", "an ONNX graph")):
        for path in files:
            if path.suffix == suffix:
                return f"'{path}' is {kind}, made from a checkpoint for another program. {_LAYOUT}: take the original."
    return None
