"""Models of a board's preset: the budget is checked first, then everything is opened, or a sentence says what is missing.

Environment variables choose what the board cannot know:
- COMPASS_EDGE_ARRANGEMENT: another arrangement of the board, by its name in `compass-edge boards NAME`;
- COMPASS_EDGE_ORIENTER_URL, COMPASS_EDGE_VERIFIER_URL: where their models are served, if not on this computer at ports 8001, 8002;
- COMPASS_EDGE_ORIENTER_CHECKPOINT, COMPASS_EDGE_VERIFIER_CHECKPOINT: what TensorRT Edge-LLM serves for them when nobody does yet, if
  it is not in the store under the part's name: a server of our own is started, supervised, and stopped with this process;
- COMPASS_EDGE_PRM_ENGINE=onnx: the progress model on ONNX Runtime, where the preset has it on TensorRT.
"""

from __future__ import annotations

import atexit
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import Board, find_board
from compass_edge.boards.budget import Budget, budget_of, features_bytes
from compass_edge.boards.fitting import ARRANGEMENT, check_fit, find_arrangement
from compass_edge.boards.machine import Machine
from compass_edge.boards.part import ENGINES, Arrangement, Part
from compass_edge.boards.payload import target_of
from compass_edge.boards.payload_plan import plan_payload
from compass_edge.boards.probe import probe
from compass_edge.boards.recognition import board_of, free_for_models, shortfall, total_for_models
from compass_edge.boards.remedies import build_command, commands_for, export_command, port_of
from compass_edge.engines.openai.endpoint import Endpoint, is_loopback
from compass_edge.errors import EnvironmentFault, UsageError
from compass_edge.loop.call import Models
from compass_edge.loop.events import Role

if TYPE_CHECKING:
    from compass_edge.engines.manifest import Manifest

PRM_ENGINE = "COMPASS_EDGE_PRM_ENGINE"
_ROLES: tuple[Role, ...] = ("orienter", "prm", "verifier")
_SERVED = ("edgellm", "server")
_DEADLINE_S = 120.0  # for a call: 27B writes ten tokens a second on Orin
_SLOTS = "8 slots, server"  # how RoboMeter is asked: part of its name


def chosen_arrangement(board: Board) -> Arrangement:
    """The preset's, unless the environment names another."""
    name = os.environ.get(ARRANGEMENT, "").strip()
    arrangement = find_arrangement(board, name) if name else preset_arrangement(board)
    engine = os.environ.get(PRM_ENGINE, "").strip()
    if engine not in ("", "onnx", "tensorrt"):
        raise UsageError(f"{PRM_ENGINE} must be onnx or tensorrt, and '{engine}' came.")
    if not engine or arrangement.part("prm").engine == engine:
        return arrangement
    parts = tuple(_moved(part, engine) if part.roles == ("prm",) else part for part in arrangement.parts)
    return replace(arrangement, parts=parts)


def _moved(part: Part, engine: str) -> Part:
    """TensorRT reads a clip in one pass and keeps nothing; ONNX Runtime keeps what the next clip shares with it."""
    rows = 1 if engine == "onnx" else 0
    return replace(part, engine=engine, limits=replace(part.limits, rows=rows))  # type: ignore[arg-type]


def endpoint_of(part: Part) -> Endpoint:
    role = part.roles[0]
    url = os.environ.get(f"COMPASS_EDGE_{role.upper()}_URL", "").strip() or f"http://127.0.0.1:{port_of(part)}/v1"
    return Endpoint(url, part.model, deadline_s=_DEADLINE_S)


def own_checkpoint(part: Part) -> Path | None:
    """What we may serve ourselves. Whoever names a URL serves it."""
    role = part.roles[0].upper()
    if part.engine != "edgellm" or os.environ.get(f"COMPASS_EDGE_{role}_URL", "").strip():
        return None
    from compass_edge.engines.store import models_folder

    given = os.environ.get(f"COMPASS_EDGE_{role}_CHECKPOINT", "").strip()
    folder = Path(given).expanduser() if given else models_folder() / part.stored / "quantized"
    if (folder / "config.json").is_file():
        return folder
    if given:
        raise UsageError(
            f"COMPASS_EDGE_{role}_CHECKPOINT must name the folder of a quantized checkpoint, and '{folder}' has no config.json. "
            "`compass-edge models edgellm CHECKPOINT OUT --board NAME` makes one: OUT/quantized."
        )
    return None


def _serve(part: Part, checkpoint: Path, machine: Machine) -> Any:
    from compass_edge.engines.edgellm.vlm import open_served

    model = open_served(part, checkpoint, machine)
    atexit.register(model.close)
    return model


def open_models(name: str, threads: int | None = None, machine: Machine | None = None) -> Models:
    board = find_board(name)
    arrangement = chosen_arrangement(board)
    machine = machine or probe()
    budget = budget_of(board, arrangement)
    troubles = {part: _server_trouble(part) for part in arrangement.parts if part.engine in _SERVED}
    check_budget(budget, machine, [part for part in arrangement.parts if troubles.get(part, "not loaded")])
    ours: dict[Part, Path] = {}
    for part, trouble in troubles.items():
        if trouble:
            checkpoint = own_checkpoint(part)
            if checkpoint is None:
                raise _not_served(board, budget, part, machine, trouble)
            ours[part] = checkpoint
    # What takes no server first: if it fails, none has been started.
    opened: dict[Part, Any] = {part: _open(part, threads) for part in arrangement.parts if part not in ours}
    for part, checkpoint in ours.items():
        opened[part] = _serve(part, checkpoint, machine)
    return Models(*(opened[arrangement.part(role)] for role in _ROLES))


def check_budget(budget: Budget, machine: Machine, waiting: list[Part]) -> None:
    """Against all memory, and, for what is not loaded yet, against what is free."""
    board = budget.board
    if trouble := shortfall(board, machine):
        like = board_of(machine)
        cure = (
            f"Use the preset {like.name}." if like else "No preset is written for this machine: `compass-edge doctor`."
        )
        raise EnvironmentFault(f"{trouble} {cure}")
    total, free = total_for_models(board, machine), free_for_models(board, machine)
    if total is None or free is None:
        told = " ".join(machine.troubles) or "It gives no reason."
        raise EnvironmentFault(
            f"The memory of {board.name} must be known before models are loaded, and this machine does not tell it. {told}"
        )
    here = [part for part in budget.arrangement.parts if part.engine not in _SERVED or _local(part)]
    check_fit(budget, total, "memory", budget.need_of(here))
    check_fit(budget, free, "free memory", budget.need_of([part for part in waiting if part in here]))


def names(name: str) -> dict[Role, str]:
    """What the opened models would be called, without opening them."""
    board = find_board(name)
    arrangement = chosen_arrangement(board)
    return {role: _name(board, arrangement.part(role), role) for role in _ROLES}


def _name(board: Board, part: Part, role: Role) -> str:
    if part.engine in _SERVED:
        return endpoint_of(part).name
    from compass_edge.engines.manifest import read_manifest

    manifest = read_manifest(_folder(part))
    if part.engine == "tensorrt":
        told = _engines_name(manifest, board, part)
    else:
        told = f"{manifest.name}@{manifest.digest[:16]}"
    return f"{told} ({_SLOTS})" if role == "prm" else told


def _local(part: Part) -> bool:
    return is_loopback(endpoint_of(part).host)


def _server_trouble(part: Part) -> str:
    from compass_edge.engines.openai.probe import probe as look

    return look(endpoint_of(part)).trouble


def _not_served(board: Board, budget: Budget, part: Part, machine: Machine, trouble: str) -> EnvironmentFault:
    plan = plan_payload(target_of(machine))
    commands = commands_for(board, budget, part, edgellm=plan.payload is not None)
    why = "" if plan.payload is not None else f" {plan.why} {plan.instead}"
    return EnvironmentFault(
        f"{ENGINES[part.engine]} must serve {part.model} for the {' and the '.join(part.roles)} at {endpoint_of(part).url}, and "
        f"does not: {trouble}{why} Start it with `{'` and then `'.join(commands)}`."
    )


def _folder(part: Part) -> Path:
    from compass_edge.engines.store import find

    try:
        return find(part.stored)
    except UsageError as error:
        raise EnvironmentFault(
            f"{part.model} must be in the store as '{part.stored}', and is not: {error} Make it with `{export_command(part)}`."
        ) from error


def _open(part: Part, threads: int | None) -> Any:
    if part.engine in _SERVED:
        from compass_edge.engines.openai.model import OpenAiModel

        return OpenAiModel(endpoint_of(part))
    folder = _folder(part)
    if part.engine == "tensorrt":
        return _open_tensorrt(part, folder)
    from compass_edge.engines.onnx.session import Options
    from compass_edge.engines.onnx.vlm import OnnxVlm
    from compass_edge.prms.robometer import RoboMeter

    options = Options(
        threads=threads,
        context=part.limits.context,
        batch=1,
        prefixes=part.limits.rows - 1,
        vision_bytes=features_bytes(part),
        snapshot_bytes=part.limits.snapshots,
    )
    return RoboMeter(folder, options) if part.roles == ("prm",) else OnnxVlm(folder, options)


def _open_tensorrt(part: Part, folder: Path) -> Any:
    from compass_edge.engines.onnx.session import Options
    from compass_edge.engines.tensorrt.load import load
    from compass_edge.prms.robometer import RoboMeter

    try:
        body = load(folder, Options(vision_bytes=features_bytes(part)))
    except (EnvironmentFault, UsageError) as error:
        raise EnvironmentFault(
            f"{part.model} is to run on TensorRT, and cannot: {error} Or set {PRM_ENGINE}=onnx, which runs it on ONNX Runtime."
        ) from error
    return RoboMeter(folder, body=body)


def _engines_name(manifest: Manifest, board: Board, part: Part) -> str:
    """By the engines for this board's chip."""
    for sm in board.sms:
        records = {record.part: record for record in manifest.engines.values() if record.target == f"sm_{sm}"}
        if records:
            some = next(iter(records.values()))
            return manifest.run_by(f"{some.flavour} {some.version}, {some.target}", records)
    raise EnvironmentFault(
        f"'{part.stored}' must have engines for {' or '.join(f'sm_{sm}' for sm in board.sms)}, and has none. Build them with "
        f"`{build_command(board, part)}`."
    )
