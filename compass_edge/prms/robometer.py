"""RoboMeter: Qwen3-VL with a progress token behind each frame, and heads that read a progress and a success there.

Two ways of asking are public, and they are different estimators:

- `frame_steps`: the progress at a frame is read from a clip of `slots` frames spread over all that came before, always
  ending with that frame. `server` rounds their places down and repeats the first frames of a short clip; `baseline` rounds
  to the nearest, and repeats the last frame of a clip that is shorter than its slots.
- `whole`: all frames in one sequence. A frame is read once and its progress never changes afterwards.

Clips of `frame_steps` have leading slots in common, and so the decoder reads a tree instead of a list: what a row of its
memory holds of a clip already is not read again. A frame goes through the tower once. Both are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.feature_store import FeatureStore
from compass_edge.engines.onnx.load import load
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.scoring_body import ScoringBody
from compass_edge.errors import UsageError
from compass_edge.models import Clip, Image

Mode = Literal["frame_steps", "whole"]
Rounding = Literal["server", "baseline"]
# Word by word as the model was trained on it.
_PROMPT = (
    "The task for the robot is '{task}'. Given the trajectory video, predict the task progress at each frame, how far along "
    "the robot is towards completing the task, a float between 0 and 1, where 0 is the starting state and 1 is when the task "
    "is completed. If the robot is not performing the same task, predict 0 progress."
)
_NUMBERED = {"add_vision_id": True}


@dataclass(frozen=True, slots=True)
class Scores:
    """Of each frame of a clip, 0 to 1."""

    progress: NDArray[np.float32]
    success: NDArray[np.float32]


def server_slots(count: int, slots: int) -> tuple[int, ...]:
    """Which of `count` frames fill the slots, as RoboMeter's evaluation server picks them."""
    return tuple(int(place) for place in np.linspace(0, count - 1, slots).astype(np.int64))


def baseline_slots(count: int, slots: int) -> tuple[int, ...]:
    """The same as its baseline evaluation picks them."""
    if count <= slots:
        return (*range(count), *[count - 1] * (slots - count))
    places = np.rint(np.linspace(0, count - 1, slots)).astype(np.int64)
    return (0, *map(int, places[1:-1]), count - 1)


_SLOTS: dict[Rounding, Callable[[int, int], tuple[int, ...]]] = {"server": server_slots, "baseline": baseline_slots}


class RoboMeter:
    """Implements ProgressModel. One call after the other, from any thread."""

    def __init__(
        self,
        model: str | Path,
        options: Options | None = None,
        *,
        mode: Mode = "frame_steps",
        slots: int = 8,
        rounding: Rounding = "server",
        features: FeatureStore | None = None,
        body: ScoringBody | None = None,
    ) -> None:
        """`model` is a name of the store or a folder. `features` may be shared by models with the same tower. `body`: what runs
        the model, loaded already; else ONNX Runtime does, or TensorRT where the device of `options` says so.
        """
        if mode not in ("frame_steps", "whole"):
            raise UsageError(f"mode must be frame_steps or whole, and '{mode}' came.")
        if rounding not in _SLOTS:
            raise UsageError(f"rounding must be one of {', '.join(_SLOTS)}, and '{rounding}' came.")
        if not isinstance(slots, int) or slots < 2:
            raise UsageError(f"slots must be a whole number of at least 2, and {slots!r} came.")
        self.mode, self.slots, self.rounding = mode, slots, rounding
        self.body: ScoringBody = body or _loaded(model, options or Options(), features)

    @property
    def manifest(self) -> Manifest:
        return self.body.manifest

    @property
    def name(self) -> str:
        way = f"{self.slots} slots, {self.rounding}" if self.mode == "frame_steps" else "whole"
        return f"{self.body.name} ({way})"

    @property
    def max_batch(self) -> int:
        return self.body.max_batch

    def score(self, clips: Sequence[Clip]) -> list[float]:
        """The progress at the last frame of each clip."""
        return [float(scores.progress[-1]) for scores in self.last(clips)]

    def last(self, clips: Sequence[Clip]) -> list[Scores]:
        """Progress and success at the last frame of each clip."""
        for clip in clips:
            _check(clip.frames)
        return self._ask([self._prompt(clip.sentence, self._chosen(clip.frames)) for clip in clips], every=False)

    def curve(self, sentence: str, frames: Sequence[Image], on_frame: Callable[[int], None] | None = None) -> Scores:
        """Progress and success at every frame; `on_frame` gets how many are done."""
        _check(frames)
        if self.mode == "whole":
            return self._ask([self._prompt(sentence, frames)], every=True)[0]
        pick = _SLOTS[self.rounding]
        places = [pick(count, self.slots) for count in range(1, len(frames) + 1)]
        made: list[Scores | None] = [None] * len(frames)
        self._encode(frames)
        # In the order of the tree: neighbours share as many slots as any two clips do, and one row of the memory serves all.
        order = sorted(range(len(frames)), key=lambda at: places[at])
        step = 1 if self.body.remembers else self.max_batch
        for start in range(0, len(order), step):
            some = order[start : start + step]
            prompts = [self._prompt(sentence, [frames[place] for place in places[at]]) for at in some]
            for at, scores in zip(some, self._ask(prompts, every=False), strict=True):
                made[at] = scores
            if on_frame:
                on_frame(min(start + step, len(order)))
        done = [scores for scores in made if scores is not None]
        return Scores(*(np.array([getattr(scores, name)[-1] for scores in done]) for name in ("progress", "success")))

    def _encode(self, frames: Sequence[Image]) -> None:
        """Ahead, several at a time; what the store has no room for is encoded when its turn comes."""
        with self.body.lock:
            self.body.prepare(frames)

    def _chosen(self, frames: Sequence[Image]) -> list[Image]:
        if self.mode == "whole":
            return list(frames)
        return [frames[place] for place in _SLOTS[self.rounding](len(frames), self.slots)]

    def _prompt(self, sentence: str, frames: Sequence[Image]) -> Prompt:
        mark = self.body.tokens.progress
        parts: list[str | int | Image] = [_PROMPT.format(task=sentence)]
        for frame in frames:
            parts += [frame, mark]
        return self.body.prompt(parts, _NUMBERED, generation=False)

    def _ask(self, prompts: Sequence[Prompt], *, every: bool) -> list[Scores]:
        wanted = []
        for prompt in prompts:
            marks = np.flatnonzero(prompt.ids == self.body.tokens.progress)
            wanted.append((marks if every else marks[-1:]).tolist())
        # Nothing behind the last mark reaches it: the end of the turn need not be read.
        cut = [prompt.until(places[-1] + 1) for prompt, places in zip(prompts, wanted, strict=True)]
        with self.body.lock:
            outputs = self.body.read_each(cut, wanted)
        return [Scores(found["progress"].copy(), found["success"].copy()) for found in outputs]


def _loaded(model: str | Path, options: Options, features: FeatureStore | None) -> ScoringBody:
    if options.device != "tensorrt":
        return load(model, "prm", options, features)
    from compass_edge.engines.tensorrt.load import load as load_tensorrt

    return load_tensorrt(model, options)


def _check(frames: Sequence[Any]) -> None:
    if not frames:
        raise UsageError("A clip must have a frame at least, and none came.")
