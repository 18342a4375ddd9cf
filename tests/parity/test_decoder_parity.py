"""Prompts, videos and rows through the decoder, exported, against transformers: every family and dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from engine_samples import (
    LOGITS,
    NO_THINKING,
    OURS,
    Case,
    drawn,
    furthest,
    held,
    prompted,
    several_sizes,
    tokens_of,
    video_patches,
)

from compass_edge.engines.architecture import Architecture
from compass_edge.engines.onnx.body import Body
from compass_edge.engines.onnx.positions import Grid, positions
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.models import Image

pytest_plugins = ["engine_cases"]
pytestmark = pytest.mark.usefixtures("one_thread")

# Prompts: their ids, their positions, the logits behind every token


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
