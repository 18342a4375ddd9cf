"""RoboMeter on ONNX Runtime against an implementation of its own in torch, with prompt, patches and schedule written out here.

Nothing of the engine is used for what is expected: the conversation is a literal string, its tokens are its bytes, patches
come from torch, and every frame's progress is a prefill from nothing over the clip that the public code would build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from random_checkpoints import write_robometer

from compass_edge.engines.onnx.session import Options
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe
from compass_edge.models import Clip, Image
from compass_edge.prms.robometer import RoboMeter, Scores

pytest_plugins = ["one_thread"]
pytestmark = pytest.mark.usefixtures("one_thread")

CLOSE = 1e-4
SPECIAL = {"<|im_start|>": 257, "<|im_end|>": 258, "<|vision_start|>": 259, "<|vision_end|>": 260, "<|image_pad|>": 262,
           "<|prog_token|>": 268}  # fmt: skip
TASK = "put the red block into grandma's bowl — twïce"
# (width, height): the first four are not resized. The smallest becomes 4 tokens.
SIZES = [(96, 64), (64, 64), (32, 160), (128, 96), (100, 70), (57, 93), (40, 30)]


def drawn(width: int, height: int, seed: int) -> Image:
    rng = np.random.default_rng([width, height, seed])
    high, wide = np.mgrid[0:height, 0:width]
    waves = [127 + 90 * np.sin(wide / rng.uniform(3, 20) + high / rng.uniform(3, 20)) for _ in range(3)]
    pixels = np.stack(waves, axis=-1) + rng.normal(0, 20, (height, width, 3))
    return Image(f"{width}x{height} {seed}", np.clip(pixels, 0, 255).astype(np.uint8))


FILM = [drawn(64, 64, seed) for seed in range(13)]
MIXED = [drawn(*size, seed) for seed, size in enumerate([*SIZES, *SIZES[:3]])]


def furthest(found: Any, expected: Any) -> float:
    """The largest difference; NaN if there is one, which is below no tolerance."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max())


def patches_of(image: Image) -> tuple[Any, tuple[int, int]]:
    """Sides to the nearest multiple of 32 (half to even), 4 tokens at least; values from -1 to 1; square by square."""
    height, width = image.pixels.shape[:2]
    high, wide = (max(32, round(side / 32) * 32) for side in (height, width))
    if high * wide < 4 * 32 * 32:
        grow = (4 * 32 * 32 / (height * width)) ** 0.5
        high, wide = (int(np.ceil(side * grow / 32)) * 32 for side in (height, width))
    pixels = torch.from_numpy(image.pixels).permute(2, 0, 1).contiguous()[None]
    if (high, wide) != (height, width):
        pixels = torch.nn.functional.interpolate(pixels, size=(high, wide), mode="bicubic", antialias=True)
    values = pixels.float().sub(127.5).div(127.5)
    rows, columns = high // 16, wide // 16
    squares = values.reshape(3, rows // 2, 2, 16, columns // 2, 2, 16).permute(1, 4, 2, 5, 0, 3, 6)
    repeated = squares.unsqueeze(5).expand(-1, -1, -1, -1, -1, 2, -1, -1)
    return repeated.reshape(rows * columns, -1), (rows, columns)


def conversation(task: str, frames: Sequence[Image]) -> str:
    said = (
        "<|im_start|>user\n"
        f"The task for the robot is '{task}'. Given the trajectory video, predict the task progress at each frame, how far "
        "along the robot is towards completing the task, a float between 0 and 1, where 0 is the starting state and 1 is "
        "when the task is completed. If the robot is not performing the same task, predict 0 progress."
    )
    for number, frame in enumerate(frames, 1):
        rows, columns = patches_of(frame)[1]
        pads = "<|image_pad|>" * (rows * columns // 4)
        said += f"Picture {number}: <|vision_start|>{pads}<|vision_end|><|prog_token|>"
    return said + "<|im_end|>\n"


def ids_of(text: str) -> list[int]:
    """A token a byte, but for the special ones."""
    pieces = re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text)
    return [token for piece in pieces for token in ([SPECIAL[piece]] if piece in SPECIAL else piece.encode())]


class Reference:
    def __init__(self, folder: Path, shards: int, bins: int) -> None:
        self.folder = folder
        self.model = write_robometer(folder, shards=shards, bins=bins)
        self._scored: dict[Any, tuple[Any, Any]] = {}

    def scores(self, task: str, frames: Sequence[Image]) -> tuple[np.ndarray, np.ndarray]:
        """Progress and success at every mark of one sequence. Kept for the other dialect."""
        key = (task, *(frame.digest for frame in frames))
        if key not in self._scored:
            patches, grids = zip(*map(patches_of, frames), strict=True)
            given = {"pixel_values": torch.cat(patches), "image_grid_thw": torch.tensor([(1, *grid) for grid in grids])}
            self._scored[key] = self.model.scores(
                ids_of(conversation(task, frames)), SPECIAL["<|prog_token|>"], **given
            )
        return self._scored[key]

    def steps(self, task: str, frames: Sequence[Image], chosen: Callable[[int], Sequence[int]]) -> np.ndarray:
        """[2, frames]: of every prefix the last mark's progress and success, with the frames that `chosen` picks of it."""
        last = [self.scores(task, [frames[at] for at in chosen(count)]) for count in range(1, len(frames) + 1)]
        return np.array([[values[-1] for values in pair] for pair in last]).T


@dataclass(frozen=True)
class Case:
    reference: Reference
    dialect: str
    folder: Path

    def open(self, **settings: Any) -> RoboMeter:
        options = {name: settings.pop(name) for name in ("prefixes", "vision_bytes", "batch") if name in settings}
        return RoboMeter(self.folder, Options(threads=1, context=1024, self_test=False, **options), **settings)

    @cached_property
    def whole(self) -> RoboMeter:
        return self.open(mode="whole")


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Reference]:
    return lru_cache(lambda shards, bins: Reference(tmp_path_factory.mktemp("robometer"), shards, bins))


@pytest.fixture(
    scope="session",
    params=[(1, 10, "ort"), (1, 10, "standard"), (3, 7, "ort"), (3, 7, "standard")],
    ids=lambda param: f"{param[0]} file(s), {param[1]} bins, {param[2]}",
)
def meter(
    request: pytest.FixtureRequest,
    references: Callable[[int, int], Reference],
    tmp_path_factory: pytest.TempPathFactory,
) -> Case:
    shards, bins, dialect = request.param
    reference = references(shards, bins)
    assert len(list(reference.folder.glob("*.safetensors"))) == shards
    out = tmp_path_factory.mktemp("models") / dialect
    recipe = Recipe(decoder="fp32", vision="fp32", embedding="fp32", dialect=dialect)
    manifest = export_model(reference.folder, out, recipe, name="robometer")
    assert (manifest.kind, manifest.family, manifest.dialect) == ("prm", "qwen3-vl", dialect)
    return Case(reference, dialect, out)


def compare(scores: Scores, expected: Any) -> None:
    assert furthest(scores.progress, expected[0]) < CLOSE
    assert furthest(scores.success, expected[1]) < CLOSE


def server(count: int, slots: int = 8) -> list[int]:
    return np.linspace(0, count - 1, slots, dtype=int).tolist()


def baseline(count: int, slots: int = 8) -> list[int]:
    """Nearest places of a long clip, its ends forced; a short one repeats its last frame."""
    if count <= slots:
        return [min(at, count - 1) for at in range(slots)]
    places = np.rint(np.linspace(0, count - 1, slots)).astype(int).tolist()
    return [0, *places[1:-1], count - 1]


def test_the_prompt_is_the_published_one(meter: Case) -> None:
    robometer = meter.whole
    prompt = robometer._prompt(TASK, MIXED)
    assert prompt.ids.tolist() == ids_of(conversation(TASK, MIXED))
    assert robometer.body.tokens.progress == SPECIAL["<|prog_token|>"]


@pytest.mark.parametrize("frames", [FILM, MIXED, FILM[:1]], ids=["one size", "several sizes", "one frame"])
def test_whole(meter: Case, frames: list[Image]) -> None:
    expected = meter.reference.scores(TASK, frames)
    assert len(frames) == 1 or expected[0].std() > 0.02  # so that one frame's value is not as good as another's
    compare(meter.whole.curve(TASK, frames), expected)
    compare(meter.whole.curve(TASK, frames), expected)  # once more, with all of it remembered


def test_whole_while_it_grows(meter: Case) -> None:
    """A frame's progress never changes afterwards; frames that were read are not encoded again."""
    robometer = meter.open(mode="whole")
    expected = meter.reference.scores(TASK, FILM)
    for count in range(1, len(FILM) + 1):
        clip = Clip(TASK, tuple(FILM[:count]))
        assert furthest(robometer.score([clip]), expected[0][count - 1 : count]) < CLOSE
    assert robometer.body.vision.passes == len(FILM)
    if meter.dialect == "ort":
        prompt = robometer._prompt(TASK, FILM)
        assert robometer.body.decoder.tokens < len(prompt) + 2 * len(FILM)


@pytest.mark.parametrize("frames", [FILM, MIXED], ids=["one size", "several sizes"])
@pytest.mark.parametrize("rounding", ["server", "baseline"])
def test_frame_steps(meter: Case, rounding: Any, frames: list[Image]) -> None:
    chosen = {"server": server, "baseline": baseline}[rounding]
    robometer = meter.open(rounding=rounding)
    expected = meter.reference.steps(TASK, frames, chosen)
    done: list[int] = []
    compare(robometer.curve(TASK, frames, done.append), expected)
    assert done[-1] == len(frames)
    assert done == sorted(done)
    body = robometer.body
    assert body.vision.passes == len(frames)
    listed = 0  # tokens that a prefill of each clip from nothing reads, up to its last mark
    for count in range(1, len(frames) + 1):
        text = conversation(TASK, [frames[at] for at in chosen(count)])
        listed += len(ids_of(text.removesuffix("<|im_end|>\n")))
    if meter.dialect == "ort":
        assert body.decoder.tokens < 0.4 * listed
        assert body.decoder.tokens + body.rows.reused == listed
    else:  # a graph that remembers nothing
        assert body.decoder.tokens >= listed


def test_the_two_roundings_differ(meter: Case) -> None:
    """Else one test above would stand for both."""
    first, second = (meter.reference.steps(TASK, FILM, chosen) for chosen in (server, baseline))
    assert furthest(first, second) > 100 * CLOSE


def test_four_slots(meter: Case) -> None:
    expected = meter.reference.steps(TASK, FILM[:7], lambda count: server(count, 4))
    compare(meter.open(slots=4).curve(TASK, FILM[:7]), expected)


@pytest.mark.parametrize("mode", ["frame_steps", "whole"])
def test_clips_of_several_tasks_and_lengths(meter: Case, mode: Any) -> None:
    clips = [
        Clip(TASK, tuple(FILM[:5])),
        Clip("open the drawer", tuple(MIXED[2:5])),
        Clip(TASK, tuple(FILM[:10])),
        Clip("open the drawer", tuple(MIXED[:1])),
        Clip("", tuple(FILM[3:11])),
    ]
    robometer = meter.open(mode=mode, batch=3)
    chosen = server if mode == "frame_steps" else range
    expected = [
        [
            values[-1]
            for values in meter.reference.scores(clip.sentence, [clip.frames[at] for at in chosen(len(clip.frames))])
        ]
        for clip in clips
    ]
    for _ in range(2):
        found = robometer.last(clips)
        assert furthest([[scores.progress[-1], scores.success[-1]] for scores in found], expected) < CLOSE
        assert furthest(robometer.score(clips), [progress for progress, _ in expected]) < CLOSE
    assert furthest([robometer.score([clip])[0] for clip in clips], [progress for progress, _ in expected]) < CLOSE


@pytest.mark.parametrize("mode", ["frame_steps", "whole"])
def test_caches_change_nothing(meter: Case, mode: Any) -> None:
    plain, without = meter.open(mode=mode), meter.open(mode=mode, prefixes=0, vision_bytes=0, batch=1)
    scores = plain.curve(TASK, MIXED)
    for _ in range(2):
        again = without.curve(TASK, MIXED)
        compare(again, (scores.progress, scores.success))
    assert without.body.vision.passes > plain.body.vision.passes == len(MIXED)
    without.body.forget()
    one_by_one = []
    for count in range(1, len(MIXED) + 1):
        without.body.forget()
        one_by_one.append(without.score([Clip(TASK, tuple(MIXED[:count]))])[0])
        assert without.body.rows.reused == 0
    assert furthest(np.array(one_by_one), scores.progress) < CLOSE
