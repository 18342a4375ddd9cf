"""`compass-edge models build`: TensorRT engines of an exported reward model, for one chip or several."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_edge.cli.byte_size import byte_size
from compass_edge.cli.interruption import Interruption
from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.cli.whole import at_least
from compass_edge.engines.engine_record import EngineRecord
from compass_edge.engines.store import find
from compass_edge.engines.tensorrt.target import TARGETS, Target, target_of
from compass_edge.errors import UsageError

if TYPE_CHECKING:
    from compass_edge.export.tensorrt.build import Built
    from compass_edge.export.tensorrt.profile import Limits

_ABOUT = """\
Makes TensorRT engines of the vision tower and the decoder of a reward model and lists them in its manifest, each with its chip,
TensorRT version, hash, and the hash of the graph that it was made from. An engine is loaded only where all of that fits.

The model must have been exported in the dialect standard. An engine computes as its graph was exported, so the precision is chosen
there; --precision here only makes sure of it. Frames and text may be as large as said here and no larger: memory on the robot is
planned for that once. Wherever the chip is at hand, the engines must answer the question of the manifest before they are listed.
"""
_TARGETS = "\n".join(
    f"  {target.name:<8} {target.boards:<36} {'built anywhere, no GPU needed' if target.ahead else 'built on the device itself'}"
    for target in TARGETS.values()
)
_EXAMPLES = f"""\
Targets:
{_TARGETS}

TensorRT-RTX: pip install 'compass-edge[tensorrt-rtx]'. TensorRT of a Jetson: sudo apt install python3-libnvinfer (JetPack 7).

Examples:
  compass-edge models export Robometer-4B --dialect standard --vision fp16 --precision int4-fp16
  compass-edge models build Robometer-4B --target sm_86                     for an RTX 30xx, on this machine
  compass-edge models build Robometer-4B --target sm_89 --target sm_120     for two chips
  compass-edge models build Robometer-4B --frame 1280x720 --frames 16       longer clips of larger pictures, for the GPU here
  compass-edge models verify Robometer-4B                                   graphs and engines, every byte

What was built before comes from a cache (COMPASS_EDGE_ENGINE_CACHE, else $XDG_CACHE_HOME/compass-edge/tensorrt). Stopped with
Ctrl-C, the model is as it was, and a part that was finished is not built again.
"""
_UNTESTED = "not run, no such chip is here; it is run wherever the engines are loaded"


def run(arguments: argparse.Namespace) -> int:
    folder = find(arguments.name)
    targets = [target_of(name) for name in dict.fromkeys(arguments.target or [_here()])]
    limits = _limits(arguments)
    rows = []
    for target in targets:
        built = _build(folder, target, limits, arguments.precision)
        rows.append(_fields(target, built))
        if not arguments.json:
            _show(folder, target, built)
    if arguments.json:
        print(json.dumps({"name": folder.name, "path": str(folder), "built": rows}, indent=1))
    else:
        print(f"Next: compass-edge models verify {arguments.name}")
    return 0


def _here() -> str:
    from compass_edge.engines.tensorrt.load import target_here

    found = target_here()
    if found is None:
        raise UsageError(
            "Say for which chip with --target: there is no GPU here to take it from (or no cuda-python to ask it with). "
            f"There are {', '.join(TARGETS)}; --help says which boards these are."
        )
    return found


def _limits(arguments: argparse.Namespace) -> Limits:
    from compass_edge.export.tensorrt.profile import Limits

    width, height = arguments.frame or (None, None)
    given = {
        "frames": arguments.frames,
        "batch": arguments.batch,
        "words": arguments.words,
        "width": width,
        "height": height,
    }
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _build(folder: Path, target: Target, limits: Limits, precision: str | None) -> Built:
    from compass_edge.export.tensorrt.build import build_engines

    bars = _Bars(target)
    with Interruption() as interruption:
        try:
            return build_engines(
                folder,
                target,
                limits,
                precision=precision,
                on_step=bars.update,
                cancelled=lambda: interruption.asked,
            )
        finally:
            bars.close()


class _Bars:
    """One bar for each phase of a build."""

    def __init__(self, target: Target) -> None:
        self._target = target.name
        self._phase, self._bar = "", ProgressBar("", None)

    def update(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self._phase, self._bar = phase, ProgressBar(f"{self._target} {phase}", max(total, 1))
        self._bar.update(done, max(total, 1))

    def close(self) -> None:
        self._bar.__exit__(None, None, None)


def _fields(target: Target, built: Built) -> dict[str, Any]:
    tested = built.tested
    return {
        "target": target.name,
        "boards": target.boards,
        "engines": engine_fields(built.engines),
        "cached": list(built.cached),
        "self_test": None if tested is None else {"worst": tested.worst, "tolerance": tested.tolerance},
    }


def engine_fields(engines: Any) -> list[dict[str, Any]]:
    """For JSON; what an engine's tensors are is of no use outside."""
    return [
        {
            "file": name,
            **{
                key: getattr(record, key)
                for key in ("part", "target", "flavour", "version", "precision", "bytes", "sha256", "graph")
            },
            "profile": {axis: list(span) for axis, span in record.profile.items()},
        }
        for name, record in engines.items()
    ]


def _show(folder: Path, target: Target, built: Built) -> None:
    some: EngineRecord = next(iter(built.engines.values()))
    print(f"{folder.name} for {target.name} ({target.boards}), by {some.flavour} {some.version}")
    for record in built.engines.values():
        most = record.most
        room = (
            f"{most['F']} frames of {most['P']} patches"
            if record.part == "vision"
            else f"{most['B']} x {most['S']} tokens"
        )
        known = ", from the cache" if record.part in built.cached else ""
        print(f"  {record.part:<8} {record.precision:<10} {byte_size(record.bytes):>9}  up to {room}{known}")
    tested = built.tested
    said = _UNTESTED if tested is None else f"{tested.worst:.2g} off, {tested.tolerance:.2g} tolerated"
    print(f"  self-test {said}")


def _frame(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"a size is WIDTHxHEIGHT in pixels, as 640x480, and '{text}' came")
    return int(found[1]), int(found[2])


def register(actions: Any) -> None:
    parser = actions.add_parser(
        "build",
        help="make TensorRT engines of a reward model",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="a model of the store, or the folder of one")
    parser.add_argument(
        "--target", action="append", metavar="SM", help="the chip; several times for several (this GPU)"
    )
    parser.add_argument("--precision", metavar="P", help="refuse unless the decoder was exported so")
    parser.add_argument("--frames", type=at_least(1), metavar="N", help="frames of a clip at most (8)")
    parser.add_argument("--batch", type=at_least(1), metavar="N", help="clips at once at most (1)")
    parser.add_argument("--frame", type=_frame, metavar="WxH", help="the largest picture (640x480)")
    parser.add_argument("--words", type=at_least(1), metavar="N", help="tokens of text in a prompt at most (384)")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)
