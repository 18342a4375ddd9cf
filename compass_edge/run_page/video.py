"""The video of the page: in the page itself when it is small, a file beside it otherwise."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

from compass_edge.eval.report.markup import words

EMBEDDED = 6 << 20  # bytes at most
_TYPES = {".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime"}


def video(path: Path | None, start_s: float, directory: Path) -> str:
    if path is None:
        return '<p class="missing">There is no film of this run: a live source keeps none.</p>'
    suffix = path.suffix.lower()
    if path.stat().st_size <= EMBEDDED:
        coded = base64.b64encode(path.read_bytes()).decode("ascii")
        address = f"data:{_TYPES.get(suffix, 'video/mp4')};base64,{coded}"
    else:
        copy = directory / f"video{suffix}"
        if not (copy.exists() and copy.samefile(path)):
            shutil.copyfile(path, copy)
        address = words(copy.name)
    return (
        f'<video id="video" controls muted playsinline preload="auto" data-start="{start_s:.3f}" src="{address}">'
        "This browser does not play this video.</video>"
    )
