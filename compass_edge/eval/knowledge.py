"""Knowledge: what oracles know of the episodes that they are told of. A frame is known by its digest, `film key/number`."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from compass_edge.data.episode import Episode, Local
from compass_edge.errors import UsageError
from compass_edge.models import Image

SENTENCE = 240  # characters that O's schema allows


def told(text: str, limit: int = SENTENCE) -> str:
    """As much of it as O may write: what P and V then get."""
    return text.strip()[:limit].strip()


def chance(*inputs: object) -> float:
    """A number from 0 to 1 that depends on the inputs alone: damage that a pure function can do."""
    hashed = hashlib.blake2b(repr(inputs).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "big") / 2**64


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A step of an episode, meant by a sentence."""

    episode: Episode
    index: int  # from 0

    @property
    def begin(self) -> int:
        return self.episode.begins[self.index]

    @property
    def end(self) -> int:
        return self.episode.truth[self.index].end


class Knowledge:
    """Films may be shared: a negative shows that of another episode under another instruction, or less of it under the same.

    Of several that answer equally well the longest is asked: it knows of more frames.
    """

    def __init__(self, episodes: Iterable[Episode], by: Local = "time") -> None:
        self.by: Local = by
        self._films: defaultdict[str, list[Episode]] = defaultdict(list)
        for episode in episodes:
            if episode.truth is not None:  # says so if nobody has annotated it
                self._films[episode.film.key].append(episode)
        for shared in self._films.values():
            shared.sort(key=lambda episode: -episode.frames)

    def episodes(self, image: Image) -> tuple[list[Episode], int]:
        """Those whose film the frame is of, and its number."""
        key, _, number = image.digest.rpartition("/")
        if key not in self._films or not number.isdigit():
            raise UsageError(
                f"An oracle must be told of an episode before it is asked, and the frame '{image.digest}' came."
            )
        return self._films[key], int(number)

    def whole(self, sentence: str, start: Image) -> Episode | None:
        """The episode whose instruction the sentence is."""
        episodes, _ = self.episodes(start)
        return next((episode for episode in episodes if episode.instruction == sentence), None)

    def meant(self, sentence: str, start: Image, position: int | None = None) -> Occurrence | None:
        """The step that a sentence means, of a clip or a question that starts with this frame.

        Steps may share a sentence, and films may be shared. It is the step at `position` if that one is called so; otherwise
        in each episode the first one of this name that is not complete at the start, or the last one if all are; and of
        several episodes the one whose step begins nearest to the start.
        """
        episodes, at = self.episodes(start)
        found = []
        for episode in episodes:
            named = [Occurrence(episode, k) for k, step in enumerate(episode.truth) if told(step.sentence) == sentence]
            if named:
                exact = [one for one in named if one.index + 1 == position]
                found.append(next((one for one in exact or named if exact or one.end > at), named[-1]))
        return min(found, key=lambda one: abs(one.begin - at), default=None)

    def local(self, occurrence: Occurrence, frame: int) -> float:
        """How far the step is in that frame, 0 to 1; 1 only once it is complete."""
        begin, end = occurrence.begin, occurrence.end
        if frame >= end or frame <= begin:
            return float(frame >= end)
        if self.by == "path":
            return min(float(occurrence.episode.local("path")[min(frame, occurrence.episode.frames - 1)]), 1.0)
        return (frame - begin) / (end - begin)
