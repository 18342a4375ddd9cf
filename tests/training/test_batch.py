"""Samples in tokens: exactly those that the engine reads and writes."""

from __future__ import annotations

import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from pathlib import Path

import numpy as np
from performed import played

from compass_edge.engines.chat import Chat
from compass_edge.engines.constraint import Grammars
from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.roles import orienter, verifier
from training.batch import Scribe, made
from training.clips import clip, clips
from training.films import Films, Sample
from training.model import VISUAL, Size, Tiny, config
from training.samples import SAMPLERS, family
from training.tokenizer import ids_of

FOLDER = Path(__file__).parents[2] / "training" / "compass-tiny"
TASKS = ("S1", "S4", "S8", "Q2", "R1", "R7")


@pytest.fixture(scope="module")
def films() -> Films:
    return Films([played(task) for task in TASKS])


def some(films: Films, kind: str, *, text: bool, count: int = 30) -> list[Sample]:
    dice = np.random.default_rng(0)
    return [SAMPLERS[kind](films, dice, text=text) for _ in range(count)]


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_prompt_is_what_the_engine_reads(films: Films, kind: str) -> None:
    scribe = Scribe(FOLDER)
    chat = Chat(FOLDER, Tokenizer(FOLDER))
    for sample in some(films, kind, text=False, count=8):
        assert sample.question is not None
        ids = chat.ids([part if isinstance(part, str) else None for part in sample.question.parts])
        ours = scribe.prompt(sample.question, pictures=True)
        one_each = [token for at, token in enumerate(ours) if token != chat.image or ours[at - 1] != chat.image]
        assert one_each == ids
        assert ours.count(chat.image) == VISUAL * sum(not isinstance(part, str) for part in sample.question.parts)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_reply_is_what_the_schema_lets_the_engine_write(films: Films, kind: str) -> None:
    """Forced tokens are those that were taught, and no taught token is masked."""
    tokenizer = Tokenizer(FOLDER)
    grammars = Grammars(tokenizer, tokenizer.size)
    for sample in some(films, kind, text=True):
        assert sample.question is not None
        wanted, at = tokenizer.encode(sample.reply), 0
        constraint = grammars.start(sample.question.schema)
        while at < len(wanted):
            forced = constraint.forced()
            if forced:
                assert wanted[at : at + len(forced)] == forced
            else:
                logits = np.zeros(tokenizer.size, np.float32)
                constraint.mask(logits)
                assert logits[wanted[at]] == 0
                forced = [wanted[at]]
            for token in forced:
                constraint.take(token)
            at += len(forced)
        assert constraint.over == (kind != "look"), "a look ends where the plan would begin"


def test_replies_are_valid_to_the_loop(films: Films) -> None:
    for sample in some(films, "first", text=False):
        orienter.read_first(sample.reply, tau='"tau"' in sample.reply, max_steps=32)
    for sample in some(films, "verify", text=False, count=100):
        verifier.read(sample.reply)


def test_more_is_shown_to_the_verifier_that_is_not_done(films: Films) -> None:
    """It believes too easily; but what is never done would teach it to reject everything."""
    verdicts = [sample.about[1] == "done" for sample in some(films, "verify", text=True, count=400)]
    assert 0.25 < np.mean(verdicts) < 0.5


def test_a_clip_begins_at_nothing_and_ends_done_unless_the_sentence_is_wrong(films: Films) -> None:
    dice = np.random.default_rng(3)
    for _ in range(200):
        sample = clip(films, dice)
        assert len(sample.frames) == len(sample.progress) == len(sample.counts)
        assert sample.progress[0] <= 0.1
        assert np.all(np.diff(sample.progress) >= 0)
        if sample.case in ("same thing", "other thing"):
            assert sample.progress.max() == 0
        elif sample.case == "right":
            assert sample.progress[-1] == 1


@pytest.mark.parametrize("kind", ["verify", "survey"])
def test_a_family_asks_different_things_about_the_same_frames(films: Films, kind: str) -> None:
    dice, sizes = np.random.default_rng(4), set()
    for _ in range(40):
        several = family(films, kind, dice, text=False)
        sizes.add(len(several))
        assert all(sample.frames == several[0].frames for sample in several)
        assert len({sample.question.parts for sample in several if sample.question is not None}) == len(several)
    assert sizes == {1, 2}


def test_the_same_clip_goes_nowhere_under_other_sentences(films: Films) -> None:
    dice = np.random.default_rng(5)
    for right, *wrong in (clips(films, dice) for _ in range(100)):
        assert right.case in ("right", "episode")
        for sample in wrong:
            assert sample.frames == right.frames
            assert sample.sentence != right.sentence
            assert sample.progress.max() == 0
            assert sample.counts[0] == 1


def test_the_words_of_a_prompt_are_learned_beside_the_reply(films: Films) -> None:
    scribe = Scribe(FOLDER)
    model = Tiny(config(Size(), scribe.tokenizer.size, ids_of(scribe.tokenizer)))
    batch = made(some(films, "next", text=False, count=6), scribe, model)
    assert not ((batch.weights > 0) & (batch.asides > 0)).any()
    learned = {scribe.tokenizer.decode([token]) for token in batch.ids[batch.asides > 0].tolist()}
    assert any("block" in piece or "button" in piece for piece in learned)
    assert not learned & {"<|image_pad|>", "<|im_start|>", "<|im_end|>"}
    assert (batch.asides[batch.ids == model.image] == 0).all()
