"""Exporter and ONNX Runtime engine against transformers: float32, eager attention, random weights, every family and dialect.

Both sides get the same patches and the same ids. Logits may differ by 1e-3 (they spread over several units), features of
the tower by 1e-5, and what two ways through our own engine give by 1e-4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from random_checkpoints import FAMILIES, VOCABULARY, write_checkpoint

from compass_edge import _native
from compass_edge.engines.architecture import Architecture
from compass_edge.engines.constraint import Grammars
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.onnx.positions import Grid, positions
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe
from compass_edge.frames.patches import FAMILIES as PREPROCESSING
from compass_edge.models import Image, Question

LOGITS, FEATURES, OURS = 1e-3, 1e-5, 1e-4
LEAST = 3136  # pixels of a frame, so that the tests can use small ones
NO_THINKING = {"enable_thinking": False}
# (width, height): whole and broken windows of Qwen2.5, wide, tall, one token high; the last ones are resized.
SIZES = [(112, 112), (224, 112), (96, 160), (320, 64), (128, 32), (100, 75), (61, 190)]
SCHEMA = {
    "type": "object",
    "properties": {
        "seen": {"type": "string", "maxLength": 6},
        "done": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["seen", "done", "count"],
    "additionalProperties": False,
}


def drawn(width: int, height: int, seed: int) -> Image:
    """Waves and noise, with a hard edge."""
    rng = np.random.default_rng([width, height, seed])
    high, wide = np.mgrid[0:height, 0:width]
    waves = [127 + 90 * np.sin(wide / rng.uniform(3, 20) + high / rng.uniform(3, 20)) for _ in range(3)]
    pixels = np.stack(waves, axis=-1) + rng.normal(0, 20, (height, width, 3))
    pixels[height // 3 : height // 2, width // 4 : width // 2] = rng.integers(0, 256, 3)
    return Image(f"{width}x{height} {seed}", np.clip(pixels, 0, 255).astype(np.uint8))


def furthest(found: Any, expected: Any) -> float:
    """The largest difference; NaN if there is one, which is below no tolerance."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max())


class Whole(NamedTuple):
    """What transformers makes of a sequence."""

    logits: np.ndarray  # [tokens, vocabulary], with an axis before it for a batch
    cache: Any


class Reference:
    """The model in transformers."""

    def __init__(self, family: str, folder: Path) -> None:
        self.family, self.folder = family, folder
        self.model = write_checkpoint(family, folder)
        size = {"shortest_edge": LEAST, "longest_edge": 1 << 20}
        (folder / "preprocessor_config.json").write_text(json.dumps({"size": size}))
        settings = {**PREPROCESSING[family], "min_pixels": LEAST, "max_pixels": 1 << 20}
        self._preprocess = _native.Preprocessor(**settings, merge=2, temporal=2, dtype="f32")
        self._read: dict[Any, Whole] = {}
        self._replies: dict[str, str] = {}

    def patches(self, image: Image) -> tuple[np.ndarray, tuple[int, int]]:
        """[patches, columns] and the grid of them."""
        height, width = image.pixels.shape[:2]
        return self._preprocess.run(image.pixels), self._preprocess.grid(width, height)

    def pictures(self, images: Sequence[Image]) -> dict[str, Any]:
        if not images:
            return {}
        patches, grids = zip(*map(self.patches, images), strict=True)
        return {
            "pixel_values": torch.from_numpy(np.concatenate(patches)),
            "image_grid_thw": torch.tensor([(1, *grid) for grid in grids]),
        }

    def kinds(self, ids: Any) -> Any:
        """1 for a token of an image, 2 for one of a video."""
        config = self.model.config
        return (ids == config.image_token_id).int() + 2 * (ids == config.video_token_id).int()

    @torch.inference_mode()
    def read(self, ids: Any, **given: Any) -> Whole:
        """A batch if `ids` have two axes. Without a mask: with one, positions of later steps would be wrong."""
        tokens = torch.as_tensor(np.asarray(ids))
        tokens = tokens if tokens.dim() == 2 else tokens[None]
        self.model.model.rope_deltas = None  # those of the sequence before would be used for words alone
        kinds = self.kinds(tokens) if given else None
        made = self.model(input_ids=tokens, mm_token_type_ids=kinds, use_cache=True, **given)
        logits = made.logits.numpy()
        return Whole(logits[0] if np.ndim(ids) == 1 else logits, made.past_key_values)

    @torch.inference_mode()
    def step(self, cache: Any, tokens: Sequence[int]) -> np.ndarray:
        """One token further in each row, behind the sequence that was read last."""
        made = self.model(input_ids=torch.tensor(tokens)[:, None], past_key_values=cache, use_cache=True)
        return made.logits[:, 0].numpy()

    def follow(self, prompt: Prompt, tokens: Sequence[int] = (), *, stepwise: bool = False) -> Whole:
        """A prompt and tokens behind it: at once, or one by one with a cache. Kept for the other dialect."""
        images = [picture.image for picture in prompt.pictures]
        key = (*prompt.keys.tolist(), *tokens, stepwise, len(tokens))
        if key not in self._read:
            begun = self.read([*prompt.ids.tolist(), *([] if stepwise else tokens)], **self.pictures(images))
            further = [self.step(begun.cache, [token]) for token in tokens] if stepwise else []
            self._read[key] = Whole(np.concatenate([begun.logits, *further]), begun.cache)
        return self._read[key]

    def reply(self, body: Body, question: Question) -> str:
        """The likeliest token that the schema allows, one after the other."""
        key = question.digest(self.family)
        if key not in self._replies:
            self._replies[key] = self._written(body, question)
        return self._replies[key]

    def _written(self, body: Body, question: Question) -> str:
        constraint = Grammars(body.tokenizer, VOCABULARY).start(question.schema)
        prompt, tokens = prompted(body, *question.parts), []
        begun = self.read(prompt.ids, **self.pictures([picture.image for picture in prompt.pictures]))
        row = begun.logits[-1].copy()
        while True:
            constraint.mask(row)
            tokens.append(int(row.argmax()))
            constraint.take(tokens[-1])
            if constraint.over or len(tokens) == question.max_tokens:
                return bytes(token for token in tokens if token < 256).decode(errors="replace")
            row = self.step(begun.cache, tokens[-1:])[0].copy()


@dataclass(frozen=True)
class Case:
    """An exported model beside its original."""

    reference: Reference
    folder: Path

    def open(self, **options: Any) -> OnnxVlm:
        return OnnxVlm(self.folder, Options(**{"threads": 1, "context": 1024, "self_test": False, **options}))

    @cached_property
    def vlm(self) -> OnnxVlm:
        """One that several tests use; whoever does forgets first."""
        return self.open()

    @cached_property
    def small(self) -> OnnxVlm:
        """The same with three rows."""
        return self.open(batch=1, prefixes=2)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """The models are so small that threads of torch would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reference]:
    return lru_cache(lambda family: Reference(family, tmp_path_factory.mktemp(family)))


@pytest.fixture(
    scope="session", params=[f"{family} {dialect}" for family in FAMILIES for dialect in ("ort", "standard")]
)
def case(
    request: pytest.FixtureRequest, references: Callable[[str], Reference], tmp_path_factory: pytest.TempPathFactory
) -> Case:
    family, dialect = request.param.split()
    reference, out = references(family), tmp_path_factory.mktemp("models") / dialect
    recipe = Recipe(decoder="fp32", vision="fp32", embedding="fp32", dialect=dialect)
    manifest = export_model(reference.folder, out, recipe, name=family)
    assert (manifest.family, manifest.dialect, manifest.kind) == (family, dialect, "vlm")
    return Case(reference, out)


@pytest.fixture
def body(case: Case) -> Iterator[Body]:
    made = case.vlm.body
    made.forget()
    spoil(made)
    with made.lock:
        yield made


def spoil(body: Body) -> None:
    """What a row held before must not matter: neither keys beyond its length nor states of another sequence."""
    for buffer in (*body.decoder.memory.cache.values(), *body.decoder.memory.states.values()):
        buffer[...] = 3.0


def prompted(body: Body, *parts: str | Image, begun: Sequence[int] = ()) -> Prompt:
    return body.prompt(parts, NO_THINKING, generation=True, begun=begun)


def tokens_of(count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, 256, count).tolist()


def held(body: Body, row: int, length: int) -> dict[str, np.ndarray]:
    """A row's keys and values so far, and its states."""
    memory = body.decoder.memory
    cache = {name: values[row, :, :length].copy() for name, values in memory.cache.items()}
    return cache | {name: state[row].copy() for name, state in memory.states.items()}


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float = OURS) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert furthest(found[name], values) < tolerance, name


# Vision


def expected_features(reference: Reference, kind: str, patches: np.ndarray, grids: Any) -> tuple[list[Any], list[Any]]:
    """Of each picture: [tokens, hidden], and [taps, tokens, hidden] or None."""
    with torch.inference_mode():
        features_of = getattr(reference.model.model, f"get_{kind}_features")
        made = features_of(torch.from_numpy(patches), torch.tensor(grids), return_dict=True)
    embeddings = [part.numpy() for part in made.pooler_output]
    taps = getattr(made, "deepstack_features", None)
    if taps is None:
        return embeddings, [None] * len(embeddings)
    return embeddings, [np.stack(of_picture) for of_picture in zip(*taps, strict=True)]


def test_pictures_of_many_sizes_through_the_tower(case: Case, body: Body) -> None:
    images = [drawn(*size, seed) for seed in range(2) for size in SIZES]
    patches, grids = zip(*map(case.reference.patches, images), strict=True)
    embeddings, taps = expected_features(
        case.reference, "image", np.concatenate(patches), [(1, *grid) for grid in grids]
    )
    assert np.concatenate(embeddings).std() > 0.1
    found = body.vision.features(images)
    for features, grid, expected, tapped in zip(found, grids, embeddings, taps, strict=True):
        assert (features.rows * 2, features.columns * 2) == grid
        assert furthest(features.embeddings, expected) < FEATURES
        assert (features.taps is None) == (tapped is None) == (case.reference.family != "qwen3-vl")
        if tapped is not None:
            assert furthest(features.taps, tapped) < FEATURES


def video_patches(reference: Reference, count: int, width: int, height: int) -> tuple[np.ndarray, tuple[int, int]]:
    """[pairs, patches, columns]: each row has a patch of one frame and the same place of the next."""
    frames = [reference.patches(drawn(width, height, seed)) for seed in range(count)]
    blocks = np.stack([patches.reshape(len(patches), 3, 2, -1) for patches, _ in frames])
    pairs = np.stack([blocks[0::2, :, :, 0], blocks[1::2, :, :, 1]], axis=3)
    return np.ascontiguousarray(pairs.reshape(count // 2, len(frames[0][0]), -1)), frames[0][1]


@pytest.mark.parametrize("size", [(112, 84), (160, 96)])
def test_videos_through_the_tower(case: Case, body: Body, size: tuple[int, int]) -> None:
    patches, grid = video_patches(case.reference, 6, *size)
    both = patches.reshape(*patches.shape[:2], 3, 2, -1)
    assert not np.array_equal(both[:, :, :, 0], both[:, :, :, 1])
    embeddings, taps = expected_features(
        case.reference, "video", patches.reshape(-1, patches.shape[2]), [(len(patches), *grid)]
    )
    found = body.vision.encode_patches(patches, *grid)
    assert furthest(np.concatenate([features.embeddings for features in found]), embeddings[0]) < FEATURES
    if taps[0] is not None:
        assert furthest(np.concatenate([features.taps for features in found], axis=1), taps[0]) < FEATURES


# Prompts: their ids, their positions, the logits behind every token


def several_sizes(body: Body) -> Prompt:
    images = [drawn(*size, seed) for seed, size in enumerate(SIZES[:5])]
    return prompted(
        body, "Before: ", images[0], "after:", images[1], images[2], " und sö. ", images[3], images[4], "Done?"
    )


def test_prompts_have_the_ids_and_positions_of_transformers(case: Case, body: Body) -> None:
    prompt = several_sizes(body)
    model, token = case.reference.model.model, body.tokens.image
    images = [picture.image for picture in prompt.pictures]
    given = case.reference.pictures(images)
    grids = given["image_grid_thw"]
    ids = body.chat.ids(["Before: ", None, "after:", None, None, " und sö. ", None, None, "Done?"], options=NO_THINKING)
    sizes = iter((grids.prod(-1) // 4).tolist())
    expanded = [one for whole in ids for one in ([token] * next(sizes) if whole == token else [whole])]
    assert prompt.ids.tolist() == expanded
    tokens = torch.tensor([expanded])
    placed, delta = model.get_rope_index(tokens, case.reference.kinds(tokens), image_grid_thw=grids)
    assert np.array_equal(prompt.positions, placed[:, 0].numpy())
    assert prompt.next_position == len(prompt) + int(delta[0, 0])


def long_one(body: Body) -> Prompt:
    """More than the engine reads in a pass, with images across the seams."""
    parts: list[str | Image] = []
    for seed in range(6):
        parts += [f"{seed}. The gripper is above the tray; " * 2, drawn(224, 224, seed)]
    prompt = prompted(body, *parts, "What now?")
    assert 700 < len(prompt) < 950
    return prompt


def words_alone(body: Body) -> Prompt:
    return prompted(body, "No picture here, and still a question: how many blocks lie on the table?")


def the_same_again(body: Body) -> Prompt:
    """Letters, blanks and a wall of one colour: keys that repeat are the hard case of the delta rule."""
    wall = Image("a wall", np.full((224, 224, 3), 90, np.uint8))
    return prompted(body, "a" * 100, wall, " " * 90 + "ab" * 50, wall, "?")


@pytest.mark.parametrize("made", [several_sizes, long_one, words_alone, the_same_again])
def test_logits_of_a_prompt_and_64_steps(case: Case, body: Body, made: Callable[[Body], Prompt]) -> None:
    """Of every token of the prompt and of the reply. What the rows remember is what transformers does, too."""
    prompt, reply = made(body), tokens_of(64, seed=1)
    expected, cache = case.reference.follow(prompt, reply, stepwise=True)
    assert expected.std() > 2
    row, outputs = body.read(prompt, range(len(prompt)))
    assert furthest(outputs["logits"], expected[: len(prompt)]) < LOGITS
    for at, token in enumerate(reply):
        found = body.advance(row, [[token]], [prompt.next_position + at])["logits"]
        assert furthest(found[0, 0], expected[len(prompt) + at]) < LOGITS
    remembered = held(body, row, len(prompt) + 64)
    for layer, mixer in enumerate(body.decoder.numbers.mixers):
        kept = cache.layers[layer]
        if mixer == "attention":
            assert furthest(remembered[f"{layer}.key"], kept.keys[0]) < LOGITS
            assert furthest(remembered[f"{layer}.value"], kept.values[0]) < LOGITS
        else:
            window = kept.conv_states[0][0, :, -3:].T
            assert furthest(remembered[f"{layer}.window"], window) < LOGITS
            assert furthest(remembered[f"{layer}.state"], kept.recurrent_states[0][0]) < LOGITS


def test_wanted_places_are_independent(body: Body) -> None:
    prompt = several_sizes(body)
    every = body.read(prompt, range(len(prompt)))[1]["logits"]
    for places in ([len(prompt) - 1], [0, 70, len(prompt) - 1], [63, 64, 65, 127, 128]):
        body.forget()
        assert furthest(body.read(prompt, places)[1]["logits"], every[places]) < OURS


# Videos in the decoder


def test_logits_of_a_video(case: Case, body: Body) -> None:
    """Qwen2.5: one grid whose frames are as far apart as the seconds between them. Qwen3: a grid a frame, times between."""
    reference, tokens = case.reference, body.tokens
    patches, grid = video_patches(reference, 6, 112, 84)
    rows, columns = grid[0] // 2, grid[1] // 2
    seconds = Architecture.from_dict(body.manifest.architecture).seconds
    size = rows * columns
    given: dict[str, Any] = {"video_grid_thw": torch.tensor([[3, *grid]])}
    runs: list[list[int] | Grid] = [[*b"A robot: "]]
    if seconds:
        apart = 1.375
        given["second_per_grid_ts"] = torch.tensor([apart])
        runs += [Grid(3, rows, columns, apart * seconds)]
    else:
        for frame in range(3):
            runs += [[*f"<{frame * 0.7:.1f} seconds>".encode()], Grid(1, rows, columns)]
    runs += [[*b" What does it do with the red block?"]]
    ids = [one for run in runs for one in ([tokens.video] * run.tokens if isinstance(run, Grid) else run)]
    placed, following = positions([run if isinstance(run, Grid) else len(run) for run in runs])
    if seconds:
        assert np.unique(placed[0, np.array(ids) == tokens.video] - 9).tolist() == [0, 5, 11]

    features = body.vision.encode_patches(patches, *grid)
    embeddings = body.embedding.run(np.array(ids))
    here = np.flatnonzero(np.array(ids) == tokens.video)
    assert len(here) == 3 * size
    embeddings[here] = np.concatenate([found.embeddings for found in features])
    taps = None
    if body.decoder.numbers.taps:
        taps = np.zeros((body.decoder.numbers.taps, 1, *embeddings.shape), np.float32)
        taps[:, 0, here] = np.concatenate([found.taps for found in features], axis=1)
    body.decoder.memory.clear(0)
    every = np.arange(len(ids))[None]
    found = body.decoder.run(0, [0], embeddings[None], placed[:, None], every, taps)["logits"]
    pixels = torch.from_numpy(patches.reshape(-1, patches.shape[2]))
    expected, cache = reference.read(ids, pixel_values_videos=pixels, **given)
    assert furthest(found[0], expected) < LOGITS
    for at, token in enumerate(tokens_of(16, seed=2)):
        word = body.embedding.run(np.array([token]))[None]
        place = np.full((3, 1, 1), following + at)
        found = body.decoder.run(0, [len(ids) + at], word, place, np.zeros((1, 1), np.int64))["logits"]
        assert furthest(found[:, 0], reference.step(cache, [token])) < LOGITS


# Several rows


def test_two_rows_from_the_start_and_on(case: Case, body: Body) -> None:
    """In one pass. Where there are only keys and values, the shorter one is padded behind its end."""
    reference, padded = case.reference, not body.decoder.memory.recurrent
    prompts = [
        prompted(body, drawn(112, 112, 1), "And the cup?", drawn(224, 112, 1)),
        prompted(body, drawn(224, 112, 2), "And a cup?" if padded else "And the cup?", drawn(112, 112, 2)),
    ]
    lengths = [len(prompt) for prompt in prompts]
    assert (lengths[0] > lengths[1]) == padded
    shape = (2, max(lengths), body.decoder.numbers.hidden)
    embeddings, placed = np.zeros(shape, np.float32), np.zeros((3, *shape[:2]), np.int64)
    taps = np.zeros((body.decoder.numbers.taps, *shape), np.float32)
    for row, prompt in enumerate(prompts):
        words, tapped = body._features(prompt, 0).part(0, len(prompt))
        embeddings[row, : len(prompt)], placed[:, row, : len(prompt)] = words, prompt.positions
        if tapped is not None:
            taps[:, row, : len(prompt)] = tapped
        body.decoder.memory.clear(row)
    wanted = np.stack([np.linspace(0, length - 1, 20).astype(np.int64) for length in lengths])
    found = body.decoder.run(0, [0, 0], embeddings, placed, wanted, taps)["logits"].copy()
    replies = [tokens_of(8, seed=3), tokens_of(8, seed=4)]
    whole = [reference.follow(prompt, reply).logits for prompt, reply in zip(prompts, replies, strict=True)]
    for row in range(2):
        assert furthest(found[row], whole[row][wanted[row]]) < LOGITS
    for at, both in enumerate(zip(*replies, strict=True)):
        words = body.embedding.run(np.array(both))[:, None]
        place = np.array([prompt.next_position + at for prompt in prompts])
        before = [length + at for length in lengths]
        step = body.decoder.run(0, before, words, np.tile(place[:, None], (3, 1, 1)), np.zeros((2, 1), np.int64))
        expected = [logits[length] for logits, length in zip(whole, before, strict=True)]
        assert furthest(step["logits"][:, 0], np.stack(expected)) < LOGITS


def test_rows_of_different_lengths_advance_together(case: Case, body: Body) -> None:
    prompts = [
        prompted(body, "Short."),
        prompted(body, "A picture: ", drawn(160, 96, 0), "and its question?"),
        prompted(body, drawn(112, 112, 0), drawn(61, 190, 0), "Which of the two came first, and why do you think so?"),
    ]
    replies = [tokens_of(24, seed) for seed in range(5, 8)]
    whole = [case.reference.follow(prompt, reply).logits for prompt, reply in zip(prompts, replies, strict=True)]
    for row, prompt in enumerate(prompts):
        found = body.read(prompt, [len(prompt) - 1], row + 1)[1]["logits"]
        assert furthest(found[0], whole[row][len(prompt) - 1]) < LOGITS
    for at, tokens in enumerate(zip(*replies, strict=True)):
        after = [prompt.next_position + at for prompt in prompts]
        found = body.advance(1, [[token] for token in tokens], after)["logits"]
        expected = [logits[len(prompt) + at] for logits, prompt in zip(whole, prompts, strict=True)]
        assert furthest(found[:, 0], np.stack(expected)) < LOGITS


@pytest.mark.parametrize("pieces", [(3, 1, 20), (1, 80, 2), (70,)])
def test_several_tokens_behind_a_prompt(case: Case, body: Body, pieces: tuple[int, ...]) -> None:
    prompt = prompted(body, drawn(112, 112, 3), "Reply.")
    reply = tokens_of(sum(pieces), seed=8)
    expected = case.reference.follow(prompt, reply).logits
    row, _ = body.read(prompt, [len(prompt) - 1])
    done = 0
    for count in pieces:
        found = body.advance(row, [reply[done : done + count]], [prompt.next_position + done])["logits"]
        done += count
        assert furthest(found[0, 0], expected[len(prompt) + done - 1]) < LOGITS


# Replies


def questions() -> list[Question]:
    return [
        Question(("What is in the picture?", drawn(112, 112, 5)), SCHEMA),
        Question((drawn(224, 112, 5), drawn(112, 112, 5), "And in these two?"), SCHEMA, 30),
        Question(("Just say something.",), {"type": "string", "maxLength": 8}),
        Question(("What is in the picture?", drawn(96, 160, 5)), SCHEMA),
    ]


def ask(vlm: OnnxVlm, asked: Sequence[Question]) -> list[str]:
    told = [""] * len(asked)

    def on_text(index: int, text: str) -> None:
        told[index] += text

    replies = vlm.ask(asked, on_text, lambda: False)
    assert replies == told
    return replies


def test_replies_are_those_of_transformers(case: Case) -> None:
    vlm, asked = case.open(), questions()
    expected = [case.reference.reply(vlm.body, question) for question in asked]
    assert len(set(expected)) == len(expected)
    assert ask(vlm, asked) == expected
    assert [ask(vlm, [question])[0] for question in reversed(asked)] == expected[::-1]
    assert ask(vlm, asked[1:3]) == expected[1:3]


@pytest.mark.parametrize(
    "options",
    [{"forced": False}, {"prefixes": 0}, {"vision_bytes": 0},
     {"forced": False, "prefixes": 0, "vision_bytes": 0, "snapshot_bytes": 0}],
)  # fmt: skip
def test_caches_and_forced_tokens_change_nothing(case: Case, options: dict[str, Any]) -> None:
    asked = questions()
    plain, other = case.open(), case.open(**options)
    replies = [ask(plain, asked), ask(plain, asked[:2]), ask(plain, asked)]
    assert [ask(other, asked), ask(other, asked[:2]), ask(other, asked)] == replies
    assert plain.body.vision.passes == 3  # pictures that differ
    assert plain.body.rows.reused > 0
    if "vision_bytes" in options:
        assert other.body.vision.passes > 3
    if "forced" in options:
        assert other.body.decoder.passes > 1.5 * plain.body.decoder.passes
    prompt = several_sizes(plain.body)
    places = [len(prompt) - 30, len(prompt) - 1]
    found = [vlm.body.read(prompt, places)[1]["logits"].copy() for vlm in (plain, other) for _ in range(2)]
    for logits in found[1:]:
        assert furthest(logits, found[0]) < OURS


def test_log_probabilities_are_those_of_transformers(case: Case) -> None:
    parts = ("Is it done? ", drawn(112, 112, 6), drawn(160, 96, 6))
    body = case.vlm.body
    for text in ("True", "Falsch, älter"):
        tokens = list(text.encode())
        prompt = prompted(body, *parts)
        logits = torch.from_numpy(case.reference.follow(prompt, tokens).logits[len(prompt) - 1 : -1])
        expected = logits.log_softmax(-1)[range(len(tokens)), tokens]
        assert furthest(case.vlm.log_probabilities(parts, text), expected) < LOGITS


# Prefixes that are not read again

FRAMES = [drawn(112, 112, seed) for seed in range(10, 14)]
HEAD = "The robot tidies the table; these are its frames: "
TAIL = "Say what has changed between them, and whether the step is done."
# What is read one after the other. The last one shares a beginning with those before it, up to another place each time.
HISTORIES: dict[str, list[Sequence[str | Image]]] = {
    "in the first text": [(HEAD, FRAMES[0]), (HEAD[:40] + "XYZ", FRAMES[1]), (HEAD[:40] + "UVW", FRAMES[0])],
    "at the first image": [(HEAD, FRAMES[0], TAIL), (HEAD, FRAMES[1], TAIL)],
    "at the second image": [(HEAD, FRAMES[0], TAIL, FRAMES[1], TAIL), (HEAD, FRAMES[0], TAIL, FRAMES[2], TAIL)],
    "at an image beside another": [(HEAD, *FRAMES[:3], TAIL), (HEAD, *FRAMES[:2], FRAMES[3], TAIL)],
    "in the last text": [
        (HEAD, FRAMES[0], TAIL),
        (HEAD, FRAMES[0], TAIL[:36] + "1"),
        (HEAD, FRAMES[0], TAIL[:36] + "2"),
    ],
    "nowhere": [(HEAD, FRAMES[0], TAIL), (HEAD, FRAMES[0], TAIL)],
    "where it ends": [(HEAD, *FRAMES, TAIL), (HEAD, FRAMES[0])],
    "an image of another size": [(HEAD, FRAMES[0], drawn(224, 112, 9)), (HEAD, FRAMES[0], drawn(112, 224, 9), TAIL)],
    "the best of several rows": [(HEAD, *FRAMES[:3]), (TAIL, FRAMES[0]), (HEAD, *FRAMES[1:]), (HEAD, *FRAMES[:2], TAIL)],
}  # fmt: skip


def fresh(case: Case, prompt: Prompt, wanted: Sequence[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Of a body that has read nothing before."""
    body = case.vlm.body
    body.forget()
    spoil(body)
    row, outputs = body.read(prompt, wanted)
    assert body.rows.reused == 0
    return outputs["logits"].copy(), held(body, row, len(prompt))


@pytest.mark.parametrize("differs", HISTORIES)
def test_a_prefix_that_is_reused_equals_one_that_is_read(case: Case, differs: str) -> None:
    body = case.small.body
    body.forget()
    spoil(body)
    prompts = [prompted(body, *parts) for parts in HISTORIES[differs]]
    for prompt in prompts[:-1]:
        body.read(prompt, [len(prompt) - 1])
    reused, read = body.rows.reused, body.decoder.tokens
    last = prompts[-1]
    row, outputs = body.read(last, [len(last) - 2, len(last) - 1])
    assert body.rows.reused > reused
    assert body.decoder.tokens - read < len(last)
    logits, memory = fresh(case, last, [len(last) - 2, len(last) - 1])
    assert furthest(outputs["logits"], logits) < OURS
    same(held(body, row, len(last)), memory)
    assert furthest(outputs["logits"], case.reference.follow(last).logits[-2:]) < LOGITS


def test_a_reply_is_a_prefix_too(case: Case) -> None:
    """Words that were written count as words that were read."""
    body = case.small.body
    body.forget()
    parts, reply = (HEAD, FRAMES[0], TAIL), tokens_of(40, seed=9)
    prompt = prompted(body, *parts)
    row, _ = body.read(prompt, [len(prompt) - 1])
    for at, token in enumerate(reply[:30]):
        body.advance(row, [[token]], [prompt.next_position + at])
    longer = prompted(body, *parts, begun=reply)
    row, outputs = body.read(longer, [len(longer) - 1])
    assert body.rows.reused >= len(prompt) + (0 if body.decoder.memory.recurrent else 30)
    logits, memory = fresh(case, longer, [len(longer) - 1])
    assert furthest(outputs["logits"], logits) < OURS
    same(held(body, row, len(longer)), memory)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("snapshots", [3, 1000])
def test_any_sequence_of_prompts_equals_fresh_ones(case: Case, seed: int, snapshots: int) -> None:
    """Prompts with common parts in random order, replies of random length between them, few rows, few snapshots."""
    rng = np.random.default_rng([seed, snapshots])
    one = case.vlm.body.decoder.memory.snapshot_bytes
    body = case.open(batch=2, prefixes=int(rng.integers(0, 3)), snapshot_bytes=max(snapshots * one, 1)).body
    pieces: list[str | Image] = [HEAD, TAIL, "Then? ", *FRAMES, drawn(224, 112, 9)]
    for _ in range(8):
        parts = [HEAD] if rng.random() < 0.7 else []
        parts += [pieces[at] for at in rng.integers(0, len(pieces), rng.integers(1, 5))]
        prompt = prompted(body, *parts)
        wanted = sorted({int(rng.integers(len(prompt) // 2, len(prompt))), len(prompt) - 1})
        row, outputs = body.read(prompt, wanted, None if rng.random() < 0.7 else int(rng.integers(0, 2)))
        logits, memory = fresh(case, prompt, wanted)
        assert furthest(outputs["logits"], logits) < OURS
        same(held(body, row, len(prompt)), memory)
        position = prompt.next_position
        for count in rng.integers(1, 6, rng.integers(0, 4)):
            body.advance(row, [tokens_of(count, int(rng.integers(1000)))], [position])
            position += count
    assert body.rows.reused > 0
