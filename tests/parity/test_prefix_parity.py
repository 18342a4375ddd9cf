"""Prefixes that are not read again, against fresh ones and transformers: every family and dialect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from engine_samples import LOGITS, OURS, Case, drawn, furthest, held, prompted, same, spoil, tokens_of

from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.models import Image

pytest_plugins = ["engine_cases"]
pytestmark = pytest.mark.usefixtures("one_thread")

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
