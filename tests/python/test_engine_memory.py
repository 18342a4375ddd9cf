"""What an engine remembers between questions: less work, the same answers, also after failures, giving up, and from threads."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from exported_samples import EACH, Open, Samples, ask, distance, picture, question

from compass_edge.models import Image


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    return Samples(tmp_path_factory.mktemp("samples")).vlm


# What is remembered


@EACH
def test_reuse_changes_nothing_but_the_work(opened: Open, kind: str, dialect: str) -> None:
    """Twenty prompts that share beginnings, each against a model that has seen nothing."""
    dice, model, fresh = np.random.default_rng(0), opened(kind, dialect), opened(kind, dialect)
    for _ in range(20):
        count = int(dice.integers(1, 4))
        parts: list[str | Image] = []
        for _ in range(count):
            parts += [picture(int(dice.integers(2))), " and then this follows" * int(dice.integers(1, 3))]
        with model.body.lock:
            prompt = model.body.prompt(parts, {}, generation=True)
            fresh.body.rows.forget_all()
            logits = [body.read(prompt, [len(prompt) - 1])[1]["logits"] for body in (model.body, fresh.body)]
        assert distance(*logits) < 1e-4
    assert model.body.rows.reused > 500
    assert model.body.vision.passes == 2
    assert fresh.body.decoder.tokens > model.body.decoder.tokens


@EACH
def test_a_conversation_that_goes_on_reads_only_what_is_new(opened: Open, kind: str, dialect: str) -> None:
    """The third question: recurrent states are kept where the second one differed from the first."""
    model = opened(kind, dialect)
    ask(model, question(0))
    ask(model, question(1))
    body = model.body
    tokens, passes, reused = body.decoder.tokens, body.vision.passes, body.rows.reused
    text = ask(model, question(2))[0]
    prompt = len(body.prompt(question(2).parts, {"enable_thinking": False}, generation=True))
    reused = body.rows.reused - reused
    assert reused > prompt / 3
    assert body.vision.passes == passes + 1
    assert body.decoder.tokens - tokens <= prompt - reused + len(text.encode())


def test_what_is_kept_is_bounded(opened: Open) -> None:
    model = opened("qwen3.5", vision_bytes=20_000, snapshot_bytes=100_000)
    body = model.body
    for number in range(12):
        ask(model, question(number, most=20))
        assert body.vision._store.bytes <= 20_000
        kept = {id(snapshot) for snapshot in body.rows._snapshots.values()}
        assert len(kept) * body.decoder.memory.snapshot_bytes <= 100_000
    assert len(body.rows._snapshots) > 0
    assert ask(model, question(0)) == ask(opened("qwen3.5"), question(0))


# Failures


@EACH
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pass_that_fails_is_not_remembered(
    opened: Open, kind: str, dialect: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each pass of an answer in turn, before or after it has written into the memory; the next answer is right."""
    model, passes = opened(kind, dialect), 0
    first, second = ask(opened(kind, dialect), question(0, most=30)), ask(opened(kind, dialect), question(1, most=30))
    run, fail_at = model.body.decoder.run, 0

    def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal passes
        passes += 1
        if passes == fail_at and when == "before":
            raise RuntimeError("out of memory")
        made = run(*arguments, **options)
        if passes == fail_at:
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(model.body.decoder, "run", failing)
    for fail_at in (1, 2, 3, 5):
        passes = 0
        with pytest.raises((RuntimeError, KeyboardInterrupt)):
            ask(model, question(0, most=30), question(1, most=30))
        fail_at = 0  # noqa: PLW2901 - `failing` looks at it
        assert ask(model, question(0, most=30)) == first
        assert ask(model, question(1, most=30)) == second


def test_who_listens_may_fail(opened: Open) -> None:
    model = opened()
    expected = ask(opened(), question())

    def deaf(_index: int, _piece: str) -> None:
        raise OSError("nobody there")

    with pytest.raises(OSError, match="nobody there"):
        model.ask([question()], deaf, lambda: False)
    assert ask(model, question()) == expected


# Giving up


@EACH
def test_giving_up_between_two_tokens(opened: Open, kind: str, dialect: str) -> None:
    model, heard = opened(kind, dialect), list[str]()
    expected = ask(opened(kind, dialect), question())
    assert model.ask([question()], lambda index, piece: heard.append(piece), lambda: len(heard) >= 3) == [""]
    assert len(heard) == 3
    assert expected[0].startswith("".join(heard))
    assert ask(model, question()) == expected
    assert ask(model, question(0), question(1), cancelled=lambda: True) == ["", ""]


def test_giving_up_while_another_is_answered(opened: Open) -> None:
    model = opened()
    with model.body.lock:
        assert ask(model, question(), cancelled=lambda: True) == [""]
        assert model.body.lock.locked()
    assert json.loads(ask(model, question())[0])


@pytest.mark.parametrize("kind", ["qwen3-vl", "qwen3.5"])
def test_two_threads_ask_one_model(opened: Open, kind: str) -> None:
    expected = [ask(opened(kind), question(number))[0] for number in range(4)]
    model, found, heard = opened(kind), dict[int, list[str]](), dict[int, list[str]]()

    def run(number: int) -> None:
        pieces: list[str] = []
        found[number] = [
            model.ask([question(number)], lambda index, piece: pieces.append(piece), lambda: False)[0] for _ in range(3)
        ]
        heard[number] = pieces

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [text] * 3 for number, text in enumerate(expected)}
    assert {number: "".join(pieces) for number, pieces in heard.items()} == {
        number: text * 3 for number, text in enumerate(expected)
    }
