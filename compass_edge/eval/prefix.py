"""A prefix: the frames from a start on, as a clip that grows frame by frame, for models that score the last one."""

from __future__ import annotations

from compass_edge.errors import UsageError
from compass_edge.models import Clip, Image


class Prefix:
    """Every frame until the clip would hold more than `max_frames`; then every second one goes, again and again.

    As in the loop, what is left covers the prefix evenly, the first and the newest are always there, and no more pictures
    are held than a clip may have.
    """

    def __init__(self, sentence: str, max_frames: int) -> None:
        if max_frames < 2:
            raise UsageError(f"A clip must be allowed 2 frames or more, and {max_frames} came.")
        self._sentence, self._max_frames = sentence, max_frames
        self._kept: list[tuple[int, Image]] = []  # with their place in the prefix
        self._stride, self._seen = 1, 0

    def with_frame(self, image: Image) -> Clip:
        """The clip that ends in this frame."""
        if self._kept and self._kept[-1][0] % self._stride:
            del self._kept[-1]  # it was there as the newest alone
        while len(self._kept) + 1 > self._max_frames:
            self._stride *= 2
            self._kept = [(place, kept) for place, kept in self._kept if place % self._stride == 0]
        self._kept.append((self._seen, image))
        self._seen += 1
        return Clip(self._sentence, tuple(kept for _, kept in self._kept))
