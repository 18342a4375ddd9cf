"""Plain video files: episodes that nobody has annotated yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compass_edge.data.episode import Episode
from compass_edge.data.video_film import VideoFilm

SUFFIXES = (".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v", ".ts")


class VideoDataset:
    """One file, or every video below a folder. `task` is the instruction; without one it is what the file is called."""

    format = "video"

    def __init__(self, root: Path | str, task: str | None = None) -> None:
        self.root, self.task = Path(root), task
        self.name = self.root.resolve().name
        self._paths = [self.root]
        if self.root.is_dir():
            self._paths = sorted(path for path in self.root.rglob("*") if path.suffix.lower() in SUFFIXES)

    def __len__(self) -> int:
        return len(self._paths)

    def episodes(self) -> Iterator[Episode]:
        for path in self._paths:
            film = VideoFilm(path)
            name = path.stem if self.root.is_file() else path.relative_to(self.root).with_suffix("").as_posix()
            yield Episode(
                id=name,
                task=path.stem,
                instruction=self.task or path.stem.replace("_", " "),
                film=film,
                frames=film.frames,
                fps=film.fps,
                steps=None,
            )
