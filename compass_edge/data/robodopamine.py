"""Robo-Dopamine's annotated episodes: NAME_annotated_keyframes.json beside NAME_{camera}.mp4.

The JSON is a list of intervals, {"anotation": text, "start_frame_id": n, "end_frame_id": m}; the key is spelt so there.
What lies before the first interval counts to the first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compass_edge.data.episode import Episode
from compass_edge.data.fields import Fields, read_json
from compass_edge.data.step_texts import steps_of
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import IntegrityError

SUFFIX = "_annotated_keyframes.json"


class RobodopamineDataset:
    """Every annotation below `root`, or one. `camera` is the end of a video's name; by default cam_high, else the first."""

    format = "robodopamine"

    def __init__(self, root: Path | str, camera: str | None = None, task: str | None = None) -> None:
        self.root, self.camera, self.task = Path(root), camera, task
        self.name = f"robodopamine/{self.root.resolve().name.removesuffix(SUFFIX)}"
        self._paths = [self.root] if self.root.is_file() else sorted(self.root.rglob(f"*{SUFFIX}"))

    def __len__(self) -> int:
        return len(self._paths)

    def episodes(self) -> Iterator[Episode]:
        for path in self._paths:
            name = path.name.removesuffix(SUFFIX)
            film = VideoFilm(self._video(path, name))
            yield Episode(
                id=f"robodopamine/{path.resolve().parent.name}/{name}",
                task="robodopamine",
                instruction=self.task or "",
                film=film,
                frames=film.frames,
                fps=film.fps,
                steps=steps_of(_spans(path), film.frames, f"'{path}'"),
            )

    def _video(self, path: Path, name: str) -> Path:
        wanted = self.camera or "cam_high"
        videos = sorted(path.parent.glob(f"{name}_*.mp4"))
        chosen = next((video for video in videos if video.stem == f"{name}_{wanted}"), None)
        if chosen is None and (self.camera or not videos):
            there = ", ".join(video.name for video in videos) or "none"
            raise IntegrityError(f"'{path}': its video '{name}_{wanted}.mp4' is missing; beside it is {there}.")
        return chosen or videos[0]


def _spans(path: Path) -> list[tuple[str, int]]:
    told = read_json(path)
    if not isinstance(told, list):
        raise IntegrityError(f"'{path}' should be a list of intervals, and a {type(told).__name__} came.")
    intervals = [Fields(entry, f"'{path}': [{place}]") for place, entry in enumerate(told)]
    spans = []
    for fields in intervals:
        begin, end = fields.whole("start_frame_id", least=0), fields.whole("end_frame_id", least=1)
        if begin >= end:
            raise IntegrityError(
                f"{fields.where}: start_frame_id must be before end_frame_id, and {begin}, {end} came."
            )
        spans.append((fields.text("anotation"), end))
    return spans
