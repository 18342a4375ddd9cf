"""`compass-edge frames`: a video through the whole frame path; with --demo a generated one that is checked."""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_edge.cli.progress_bar import ProgressBar
from compass_edge.cli.whole import at_least
from compass_edge.errors import CompassError, UsageError
from compass_edge.frames.patches import FAMILIES, preprocessor_for
from compass_edge.frames.source import DECODERS, open_source

if TYPE_CHECKING:
    from compass_edge._native import Frame
    from compass_edge.frames.tour import Tour

_DEMO_FRAMES = 150


def _take_tour(arguments: argparse.Namespace, url: str, watch: Any = None) -> Tour:
    from compass_edge.frames.tour import tour  # numpy: not needed to print a help text or to be examined by doctor

    preprocessor = preprocessor_for(arguments.model, dtype=arguments.dtype)
    with open_source(url, backend=arguments.backend, timeout_s=arguments.timeout, decoder=arguments.decoder) as source:
        total = min(source.info.frames or arguments.limit or 0, arguments.limit or source.info.frames)
        with ProgressBar("frames", total) as bar:
            seen = 0

            def each(frame: Frame) -> None:
                nonlocal seen
                seen += 1
                bar.update(seen)
                if watch is not None:
                    watch(frame)

            return tour(source, preprocessor, every=arguments.every, limit=arguments.limit, watch=each)


def _as_text(result: Tour, name: str = "") -> str:
    info, stats = result.info, result.stats
    length = f"{info.duration_s:.1f} s" if info.duration_s else "of unknown length"
    rate = f"{info.frame_rate:g} fps" if info.frame_rate else "no frame rate"
    turned = f", turned by {info.rotation} degrees" if info.rotation else ""
    decoder = "FFmpeg in C++, straight into the ring" if result.backend == "ffmpeg" else "PyAV, one copy a frame"
    lines = [
        f"video       {name or result.url}",
        f"            {info.width}x{info.height} {info.codec} {info.pixel_format}, {rate}, {length}{turned}",
        f"decoded     {stats.frames} frames by {decoder}",
        f"            {stats.direct} in place, {stats.copied} copied, {stats.converted} converted, "
        f"{stats.damaged_frames} damaged, {result.gaps} gaps",
        f"patches     {result.grid[0]} x {result.grid[1]} a frame, {result.columns} values each, {result.dtype}: "
        f"{result.visual_tokens} visual tokens",
        f"cost        decode {result.decode_ms:.2f} ms + preprocess {result.preprocess_ms:.2f} ms of one core a frame "
        f"({result.isa})" + (f": {result.realtime:.0f} x real time" if result.realtime else ""),
        f"age         {result.age_ms_median:.2f} ms from packet to patches (median), {result.age_ms_p99:.2f} ms (99th "
        "percentile)",
        f"memory      {result.ring_bytes / (1 << 20):.1f} MiB ring of {result.ring_slots} slots, fixed",
    ]
    if stats.truncated:
        lines.append(f"note        the file promised {info.frames} frames and ends early: it is truncated")
    if result.stopped_early:
        lines.append("note        stopped by you; the numbers above are of the part that was seen")
    return "\n".join(lines)


def _as_json(result: Tour, **extra: Any) -> str:
    return json.dumps({**asdict(result), "realtime": result.realtime, **extra}, indent=2)


def run_frames(arguments: argparse.Namespace) -> int:
    if arguments.demo == (arguments.url is not None):
        came = "both" if arguments.demo else "neither"
        raise UsageError(f"A URL, or --demo for a generated clip, was expected, and {came} came.")
    if arguments.demo:
        return _run_demo(arguments)
    result = _take_tour(arguments, arguments.url)
    print(_as_json(result) if arguments.json else _as_text(result))
    return 130 if result.stopped_early else 0


def _run_demo(arguments: argparse.Namespace) -> int:
    from compass_edge.frames.clip import read_number, write_clip

    numbers: list[int] = []
    with tempfile.TemporaryDirectory(prefix="compass-edge-") as folder:
        clip = write_clip(Path(folder) / "demo.mp4", frames=_DEMO_FRAMES)
        result = _take_tour(arguments, str(clip), lambda frame: numbers.append(read_number(frame.planes[0])))
    right = numbers == list(range(len(numbers))) and (result.stopped_early or len(numbers) == _DEMO_FRAMES)
    if arguments.json:
        print(_as_json(result, pictures_in_order=right))
    else:
        print(_as_text(result, name="a clip made for this demo"))
    if not right:
        raise CompassError(
            f"The clip's pictures came back wrong: expected 0 to {_DEMO_FRAMES - 1} in order, read {numbers}."
        )
    if not arguments.json:
        print(f"checked     the number painted into each picture: {len(numbers)} of {len(numbers)} in order")
    return 130 if result.stopped_early else 0


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", type=at_least(1), default=1, metavar="N", help="turn every N-th frame into patches (1)"
    )
    parser.add_argument(
        "--limit", type=at_least(1), metavar="N", help="stop after N frames; a live source needs it or Ctrl-C"
    )
    parser.add_argument("--dtype", choices=("f32", "f16", "bf16"), default="f16", help="of the patches (f16)")
    parser.add_argument("--model", choices=tuple(FAMILIES), default="qwen3-vl", help="whose preprocessing (qwen3-vl)")
    parser.add_argument(
        "--decoder", choices=DECODERS, default="software", help="on which hardware: an NVIDIA card's, or a Jetson's own"
    )
    parser.add_argument("--backend", choices=("ffmpeg", "pyav"), help="who decodes; by default the best there is")
    parser.add_argument(
        "--timeout", type=float, default=5.0, metavar="S", help="seconds without a frame that count as a stall (5)"
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def register(commands: Any) -> None:
    frames = commands.add_parser(
        "frames",
        help="a video, stream or camera through the frame path",
        description="Decodes a video into the ring, turns its frames into the patches a Qwen-VL vision tower reads, and "
        "prints what that costs and whether anything was damaged or missing.",
        epilog="Examples:\n  compass-edge frames episode.mp4\n  compass-edge frames rtsp://camera/stream --limit 300\n"
        "  compass-edge frames /dev/video0 --limit 100 --json\n  compass-edge frames --demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    frames.add_argument("url", nargs="?", metavar="URL", help="a file, rtsp://..., tcp://..., or /dev/video0")
    frames.add_argument(
        "--demo",
        action="store_true",
        help="a generated clip whose pictures show their own numbers: every one must arrive, once and in order",
    )
    _add_options(frames)
    frames.set_defaults(run=run_frames)
