"""The frame path beside its rivals: decoding into the ring, and preprocessing to patches, on one core.

Speeds are per CPU-second. `decode_vs_*` and `preprocess_vs_*` are ours over theirs: above 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import av
import numpy as np
from _race import Contender, machine, race, versions

from compass_edge._native import Preprocessor
from compass_edge.frames.clip import clip_frame
from compass_edge.frames.native import native
from compass_edge.frames.source import open_source

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
SIZES = ((640, 480), (1280, 720))
CLIP_FRAMES = 240


def make_clip(width: int, height: int) -> Path:
    """A textured, noisy clip, x264 veryfast with a key frame every 60: kept in build/ for the next run."""
    path = ROOT / "build" / f"bench_{width}x{height}.mp4"
    if path.is_file():
        return path
    path.parent.mkdir(exist_ok=True)
    random = np.random.default_rng(7)
    noise = random.integers(-12, 13, (8, height, width, 3), np.int16)
    half = path.with_suffix(".part.mp4")
    with av.open(str(half), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"preset": "veryfast", "g": "60"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(CLIP_FRAMES):
            picture = (clip_frame(number, width, height) + noise[number % 8]).clip(0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    half.rename(path)
    return path


def build_probe() -> Path | None:
    """frames_probe, built now; None where FFmpeg's development packages or cmake are missing."""
    if native().ffmpeg_version is None:
        return None
    cmake = Path(sys.executable).parent / "cmake"
    program = str(cmake) if cmake.is_file() else "cmake"
    environment = {**os.environ, "PATH": f"{cmake.parent}:{os.environ['PATH']}"}
    for command in (
        [program, "--preset", "release"],
        [program, "--build", "--preset", "release", "-t", "frames_probe"],
    ):
        try:
            subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            print("cmake is missing: pip install cmake ninja. Goes on without the native rivals.", file=sys.stderr)
            return None
        except subprocess.CalledProcessError as error:
            print(f"frames_probe was not built:\n{error.stdout}{error.stderr}", file=sys.stderr)
            return None
    return BUILD / "benchmarks" / "frames_probe"


def ask(probe: Path, *arguments: str) -> dict[str, float]:
    answer: dict[str, float] = json.loads(subprocess.run([probe, *arguments], check=True, capture_output=True).stdout)
    return answer


def decode_contenders(clip: Path, probe: Path | None) -> dict[str, Contender]:
    def timed(decode: Any) -> Contender:
        def run() -> float:
            started = time.process_time()
            count = decode()
            if count != CLIP_FRAMES:
                raise SystemExit(f"A rival decoded {count} of {CLIP_FRAMES} frames: nothing to compare.")
            return time.process_time() - started

        return run

    def ours() -> int:
        with open_source(str(clip)) as source:
            return sum(1 for _ in source)

    def pyav(convert: bool) -> int:
        count = 0
        with av.open(str(clip)) as container:
            container.streams.video[0].codec_context.thread_count = 1
            for frame in container.decode(video=0):
                if convert:
                    frame.to_ndarray(format="rgb24")
                else:
                    np.frombuffer(frame.planes[0], np.uint8)
                count += 1
        return count

    contenders: dict[str, Contender] = {}
    if probe is not None:
        contenders["libav, bare (C++)"] = lambda: ask(probe, "bare", str(clip))["cpu_s"]
        contenders["ours (C++)"] = lambda: ask(probe, "ring", str(clip))["cpu_s"]
    contenders["ours (Python)"] = timed(ours)
    contenders["PyAV rgb24"] = timed(lambda: pyav(True))
    contenders["PyAV, no conversion"] = timed(lambda: pyav(False))
    try:
        import cv2
    except ImportError:
        pass
    else:
        cv2.setNumThreads(1)

        def opencv() -> int:
            capture = cv2.VideoCapture(str(clip), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
            count = 0
            while capture.read()[0]:
                count += 1
            capture.release()
            return count

        contenders["OpenCV BGR"] = timed(opencv)
    try:
        import decord
    except ImportError:
        pass
    else:

        def decord_rgb() -> int:
            reader = decord.VideoReader(str(clip), num_threads=1)
            return sum(1 for _ in (reader[i].asnumpy() for i in range(len(reader))))

        contenders["decord RGB"] = timed(decord_rgb)
    return contenders


def torch_path(width: int, height: int, early_half: bool) -> Any:
    """The operations of transformers' torchvision processor in plain torch, for machines without torchvision.

    `early_half` goes to f16 before the patches are laid out instead of after: fewer bytes to move, a kinder rival.
    """
    import torch
    from torch.nn.functional import interpolate

    torch.set_num_threads(1)
    new_width, new_height = native().smart_resize(width, height)
    rows, columns = new_height // 16, new_width // 16
    mean = std = torch.full((3, 1, 1), 127.5)

    def run(picture: Any) -> Any:
        if (new_width, new_height) != (width, height):
            picture = interpolate(picture[None], (new_height, new_width), mode="bicubic", antialias=True)[0]
        values = picture.to(torch.float32).sub_(mean).div_(std)
        values = values.half() if early_half else values
        blocks = values.reshape(3, rows // 2, 2, 16, columns // 2, 2, 16).permute(1, 4, 2, 5, 0, 3, 6)
        patches = blocks.unsqueeze(5).expand(-1, -1, -1, -1, -1, 2, -1, -1).reshape(rows * columns, 3 * 2 * 16 * 16)
        return patches.half()

    return run


def preprocess_contenders(width: int, height: int) -> tuple[dict[str, Contender], list[str]]:
    """Ours and the Hugging Face paths, f16 out; the second value names the latter."""
    turns = 8
    picture = clip_frame(3, width, height)
    ours = Preprocessor(dtype="f16")
    grid = ours.grid(width, height)
    out = np.empty((grid[0] * grid[1], ours.columns), np.float16)
    ring = native().FrameRing(native().frame_bytes("yuv420p", width, height))
    half = [np.full(((height + 1) // 2, (width + 1) // 2), value, np.uint8) for value in (110, 140)]
    ring.writer().push([picture[:, :, 1].copy(), *half], format="yuv420p", width=width, height=height)
    reader = ring.reader()
    frame = reader.latest()

    def timed(run: Any) -> Contender:
        def turn() -> float:
            started = time.process_time()
            for _ in range(turns):
                run()
            return (time.process_time() - started) / turns

        return turn

    contenders = {
        "ours, RGB in": timed(lambda: ours.run(picture, out)),
        "ours, YUV in": timed(lambda: ours.run(frame, out)),
    }
    rivals: list[str] = []
    try:
        import torch
    except ImportError:
        return contenders, rivals
    planar = torch.from_numpy(picture.transpose(2, 0, 1).copy())
    for name, early_half in (("HF operations in torch", False), ("the same, f16 early", True)):
        path = torch_path(width, height, early_half)
        off = np.abs(path(planar).numpy().astype(np.float32) - ours.run(picture).astype(np.float32)).max()
        if off > 1.01 / 127.5:
            raise SystemExit(f"Ours and '{name}' differ by {127.5 * off:.2f} levels: nothing to compare.")
        contenders[name] = timed(lambda path=path: path(planar))
        rivals.append(name)
    try:
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    except ImportError:
        return contenders, rivals
    settings: dict[str, Any] = {
        "patch_size": 16,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "size": {"shortest_edge": 65536, "longest_edge": 16777216},
    }
    processor = Qwen2VLImageProcessorPil(**settings)
    contenders["HF numpy"] = timed(lambda: np.float16(processor(picture, return_tensors="np")["pixel_values"]))
    rivals.append("HF numpy")
    try:
        import torchvision  # noqa: F401
        from transformers import Qwen2VLImageProcessor
    except ImportError:
        return contenders, rivals
    fast = Qwen2VLImageProcessor(**settings)

    def torchvision_path() -> Any:
        return fast(planar, return_tensors="pt")["pixel_values"].half()

    contenders["HF torchvision"] = timed(torchvision_path)
    rivals.append("HF torchvision")
    return contenders, rivals


def measure(rounds: int) -> dict[str, Any]:
    probe = build_probe()
    result: dict[str, Any] = {}
    tables: dict[str, dict[str, float]] = {}
    for width, height in SIZES:
        size = f"{width}x{height}"
        spent = race(f"decode {size}", decode_contenders(make_clip(width, height), probe), rounds)
        tables[f"decode {size}, frames a CPU-second"] = {name: CLIP_FRAMES / s for name, s in spent.items()}
        suffix = "" if size == "640x480" else f"_{size}"
        if probe is not None:
            result[f"decode_vs_libav{suffix}"] = spent["libav, bare (C++)"] / spent["ours (C++)"]
        result[f"decode_vs_pyav_rgb{suffix}"] = spent["PyAV rgb24"] / spent["ours (Python)"]
    for width, height in SIZES:
        size = f"{width}x{height}"
        contenders, rivals = preprocess_contenders(width, height)
        spent = race(f"preprocess {size}", contenders, 5 * rounds)
        tables[f"preprocess {size} to f16, CPU-ms a frame"] = {name: 1e3 * s for name, s in spent.items()}
        best = min((spent[name] for name in rivals), default=None)
        result[f"preprocess_vs_hf_f16_{size}"] = best / spent["ours, RGB in"] if best is not None else None
    if probe is not None:
        counted = ask(probe, "allocations", str(make_clip(640, 480)))
        pushed = ask(probe, "push")
        result["allocations_per_frame"] = counted["ours"]
        result["allocations_per_frame_inside_ffmpeg"] = counted["ffmpeg"]
        result["ring_push_p50_us"] = pushed["p50_us"]
        result["ring_push_p999_us"] = pushed["p999_us"]
    packages = ("compass-edge", "av", "opencv-python-headless", "decord", "torch", "transformers", "numpy")
    used = {**versions(*packages), "FFmpeg (ours)": native().ffmpeg_version or "PyAV's"}
    return {**result, "isa": native().isa(), "machine": machine(), "versions": used, "tables": tables}


def print_report(result: dict[str, Any]) -> None:
    about = result["machine"]
    print(
        f"{about['cpu']}, {about['cores']} cores, load {about['load']:.1f}, kernels on {result['isa']}, {about['date']}"
    )
    print(", ".join(f"{name} {number}" for name, number in result["versions"].items()))
    for title, rows in result["tables"].items():
        print(f"\n{title}")
        ours, faster_is_more = rows[next(name for name in rows if name.startswith("ours"))], "second" in title
        for name, value in rows.items():
            print(f"  {name:<24}{value:>10.2f}{ours / value if faster_is_more else value / ours:>10.2f} x")
    print("\nThe last column and the ratios below are ours over theirs: above 1 ours is faster")
    for key, value in result.items():
        if isinstance(value, float) or value is None:
            print(f"  {key:<40}{'not measured' if value is None else f'{value:.2f}':>12}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds (7)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = measure(max(arguments.rounds, 1))
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print_report(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
