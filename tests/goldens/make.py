"""Makes the clips of this folder: `python tests/goldens/make.py`. Each frame shows its number (clip.read_number).

The clips are committed so that the tests of every machine read the same bytes, whatever encoder it has.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from compass_edge.frames.clip import write_clip

FOLDER = Path(__file__).parent
X264 = {
    "crf": "32",
    "g": "12",
    "bf": "2",
    "refs": "3",
    "preset": "veryslow",
    "x264-params": "b-adapt=0:scenecut=0:threads=1",
}


def small(name: str, **changes: object) -> Path:
    """128x96: the smallest picture whose 16 number cells survive a lossy codec."""
    settings: dict[str, object] = {"frames": 60, "width": 128, "height": 96, "rate": 30, "options": X264, **changes}
    return write_clip(FOLDER / name, **settings)  # type: ignore[arg-type]


def two_sizes() -> None:
    """Raw h264 whose picture size grows at frame 12 and shrinks back at frame 24, as when a camera is reconfigured."""
    with (FOLDER / "two_sizes.h264").open("wb") as joined:
        for width, height in ((128, 96), (192, 144), (128, 96)):
            part = small("part.h264", frames=12, width=width, height=height, options={**X264, "bf": "0"})
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)
            part.unlink()


if __name__ == "__main__":
    small("h264.mp4")  # five key frames, two B-frames between references
    small("h264.mkv")
    small("h264.ts")  # no index, and its first pts is not 0
    small("yuv444p.mp4", frames=24, pixel_format="yuv444p")
    small("ten_bit.mp4", frames=24, pixel_format="yuv420p10le")
    small("odd.avi", frames=12, width=129, height=95, codec="mjpeg", pixel_format="yuvj420p", options={"qmin": "12"})
    small("rotated.mp4", frames=24, rotation=90)
    small("variable.mkv", frames=24, pts=[33 * n + 16 * (n // 3) + n % 3 * 5 for n in range(24)])
    small("redrawn.mov", frames=24, codec="qtrle", pixel_format="rgb24", options={})  # draws into its last picture
    two_sizes()
    total = sum(path.stat().st_size for path in FOLDER.iterdir() if path.suffix != ".py")
    print(f"{total / 1000:.0f} kB")
