"""`compass-edge models edgellm`: a Qwen checkpoint, quantized and exported for TensorRT Edge-LLM."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_edge.boards.arrangements import preset_arrangement
from compass_edge.boards.board import BOARDS, Board, find_board
from compass_edge.cli.interruption import Interruption
from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.cli.whole import at_least
from compass_edge.engines.edgellm.command_line import QUANTIZATIONS, CommandLine, ServerLimits
from compass_edge.engines.edgellm.readiness import installed_command_line

if TYPE_CHECKING:
    from compass_edge.export.edgellm.conversion import Conversion, Step

_ABOUT = """\
Quantizes a Qwen3-VL or Qwen3.5 checkpoint as its board wants it, calibrated on frames of yours, and exports it for TensorRT
Edge-LLM. Jetson Orin gets INT4 AWQ, Thor and Spark NVFP4; a Qwen3.5 with its draft layer gets that too on Thor (MTP). Neither needs
a GPU, nor a model hub; a GPU makes it faster. NVIDIA asks for as much memory as the checkpoint has to quantize it, and for one and
a half times that to export it.

The work is done by NVIDIA's own tools in an environment of their own, which the first run makes (2 GB with a torch for CPUs) in
$COMPASS_EDGE_EDGELLM, else in $XDG_DATA_HOME/compass-edge, else in ~/.local/share/compass-edge.
"""
_BOARDS = "\n".join(f"  {board.name:<12} {board.about}" for board in BOARDS.values() if board.sms)
_EXAMPLES = f"""\
Boards:
{_BOARDS}

Examples:
  compass-edge models edgellm Qwen3.5-9B Qwen3.5-9B-orin --board orin-agx-64                calibrated on the bundled episodes
  compass-edge models edgellm Qwen3.5-9B Qwen3.5-9B-thor --board thor --frames my_frames    on a folder of pictures
  compass-edge models edgellm Qwen3.5-9B out --board thor --frames my_robot.mp4             or on any data set that is read here
  compass-edge models edgellm Qwen3.5-9B-NVFP4 out --board thor --only export               somebody has quantized it already
  compass-edge models edgellm out/quantized engines --board thor --only build               on the Thor: engines ahead of time

OUT/quantized goes to the board, where `tensorrt-edgellm-serve` builds engines of it at its first start; OUT/onnx is for the builders of
Edge-LLM's C++. Stopped with Ctrl-C, nothing half-made has a final name, and the same command goes on with what is finished.
"""


def run(arguments: argparse.Namespace) -> int:
    from compass_edge.export.checkpoint import Checkpoint
    from compass_edge.export.edgellm.calibration import gather
    from compass_edge.export.edgellm.conversion import CALIBRATION, Conversion
    from compass_edge.export.edgellm.environment import environment_folder, make_environment
    from compass_edge.export.edgellm.recipe import check_family, recipe_for

    board, out = find_board(arguments.board), Path(arguments.out)
    if arguments.only == "build":
        return _build(board, Path(arguments.checkpoint), out, arguments.json)
    checkpoint = Checkpoint(Path(arguments.checkpoint))
    check_family(checkpoint)
    recipe = recipe_for(board, checkpoint, arguments.precision)
    bars = _Bars()
    made: dict[str, Step] = {}
    try:
        with Interruption() as interruption:

            def cancelled() -> bool:
                return interruption.asked

            environment = make_environment(
                environment_folder(), interpreter=arguments.python, on_step=bars.update, cancelled=cancelled
            )
            conversion = Conversion(
                checkpoint, out, recipe, environment, device=arguments.device, on_step=bars.update, cancelled=cancelled
            )
            if arguments.only != "export":
                bars.update("gathering frames", 0, 1)
                made["quantized"] = conversion.quantize(gather(arguments.frames, out / CALIBRATION, arguments.samples))
                interruption.check()
            if arguments.only != "quantize":
                made["onnx"] = conversion.export()
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on with what is finished.", file=sys.stderr)
        raise
    finally:
        bars.close()
    if arguments.json:
        print(json.dumps(_fields(board, conversion, made), indent=1))
    else:
        _show(board, conversion, made)
    return 0


def _build(board: Board, checkpoint: Path, engines: Path, as_json: bool) -> int:
    from compass_edge.export.edgellm.build import build_engines

    # As wide as the widest of the board's own parts: the same engines then serve either role.
    parts = [part for part in preset_arrangement(board).parts if part.engine == "edgellm"]
    limits = ServerLimits(
        max((part.limits.prompt for part in parts), default=ServerLimits().prompt),
        max((part.limits.context for part in parts), default=ServerLimits().context),
    )
    with Interruption() as interruption, ProgressBar("building engines", None):
        made = build_engines(
            checkpoint,
            engines,
            limits,
            mtp=any(part.mtp for part in parts),
            commands=installed_command_line(),
            cancelled=lambda: interruption.asked,
        )
    told = {"board": board.name, "engines": str(made), "prompt": limits.prompt, "context": limits.context}
    print(
        json.dumps(told, indent=1)
        if as_json
        else f"'{made}': for prompts of {limits.prompt} of {limits.context} tokens."
    )
    return 0


class _Bars:
    """One bar for each phase; a phase that cannot be measured shows that it is running."""

    def __init__(self) -> None:
        self._phase, self._bar = "", ProgressBar("", None)

    def update(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self._phase, self._bar = phase, ProgressBar(phase, max(total, 1))
        self._bar.update(done, max(total, 1))

    def close(self) -> None:
        self._bar.__exit__(None, None, None)


def _fields(board: Board, conversion: Conversion, made: dict[str, Step]) -> dict[str, Any]:
    return {
        "board": board.name,
        "family": conversion.family,
        "recipe": conversion.recipe.fields,
        "environment": str(conversion.environment.folder),
        "steps": {
            name: {"path": str(step.folder), "algorithm": step.algorithm, "made": step.made}
            for name, step in made.items()
        },
    }


def _show(board: Board, conversion: Conversion, made: dict[str, Step]) -> None:
    recipe = conversion.recipe
    head = f", output layer {recipe.head}" if recipe.head else ""
    mtp = ", with its draft layer (MTP)" if recipe.mtp else ""
    print(f"{conversion.checkpoint.folder.name} for {board.name}: {recipe.quantization}{head}{mtp}")
    for name, step in made.items():
        known = "" if step.made else ", was there"
        print(f"  {name:<10} {step.algorithm or '-':<12} '{step.folder}'{known}")
    if "quantized" in made:
        serve = CommandLine().serve(
            str(made["quantized"].folder), conversion.checkpoint.folder.name, 8001, ServerLimits(), mtp=recipe.mtp
        )
        print(f"Next, on the board: {' '.join(serve)}")


def register(actions: Any) -> None:
    parser = actions.add_parser(
        "edgellm",
        help="quantize and export a Qwen checkpoint for TensorRT Edge-LLM (Jetson, RTX)",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="the folder with config.json and safetensors")
    parser.add_argument("out", metavar="OUT", help="the folder that is made, or gone on with")
    parser.add_argument("--board", required=True, metavar="NAME", help="what it is for: the list below")
    parser.add_argument(
        "--frames",
        metavar="PATH",
        help="what to calibrate on: a folder of pictures or a data set (the bundled episodes)",
    )
    parser.add_argument("--samples", type=at_least(1), default=32, metavar="N", help="frames to calibrate on (32)")
    parser.add_argument(
        "--precision", choices=tuple(QUANTIZATIONS), metavar="P", help="one of int4-awq, nvfp4, fp8 (the board's own)"
    )
    parser.add_argument(
        "--only",
        choices=("quantize", "export", "build"),
        help="one of the two steps; or, on the board itself, engines of CHECKPOINT, which is quantized",
    )
    parser.add_argument(
        "--device", choices=("auto", "cuda", "cpu"), default="auto", help="where to quantize (a GPU if torch has one)"
    )
    parser.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="a Python 3.10 to 3.12 for the environment (this one)"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)
