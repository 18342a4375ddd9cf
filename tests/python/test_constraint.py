"""Decoding under a schema, with models of random numbers: whatever they say, the object fits."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizer_samples import qwen3_folder, write_byte_tokenizer

from compass_edge.engines import constraint as constraint_module
from compass_edge.engines.constraint import Constraint, Grammars
from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.loop.plan import Plan, Step, Subtask
from compass_edge.models import Image
from compass_edge.roles import orienter, reply, verifier

IMAGE = Image("digest")
PLAN = Plan((Step(1, "cup on mat", "seen"),), issued=1)
SUBTASK = Subtask("Put the cup down.", "b", "t", "a", "lasting")
VOCAB, QWEN3_VOCAB = 512, 151_936


def questions() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that the loop asks with."""
    for tau in (True, False):
        for most in (1, 4, 32):
            for name, question in (
                ("first", orienter.first("task", IMAGE, tau=tau, max_steps=most)),
                ("next", orienter.next_step("task", PLAN, (), IMAGE, tau=tau, max_steps=most)),
                ("review", orienter.review("task", PLAN, (), IMAGE, max_steps=most)),
                ("verify", verifier.question(SUBTASK, (), IMAGE, IMAGE, IMAGE, tau=tau)),
            ):
                yield f"{name}-{tau}-{most}", dict(question.schema)


SCHEMAS = dict(questions())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Grammars]:
    tokenizer = Tokenizer(write_byte_tokenizer(tmp_path_factory.mktemp("small")))
    return tokenizer, Grammars(tokenizer, VOCAB)


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Grammars]:
    tokenizer = Tokenizer(qwen3_folder(tmp_path_factory.mktemp("qwen3")))
    return tokenizer, Grammars(tokenizer, QWEN3_VOCAB)


class Noise:
    """A model: numbers that depend on the tokens so far, with a liking for some, or texts would run to their bound."""

    def __init__(self, vocab: int, seed: int, liked: Sequence[int], liking: float = 2.5) -> None:
        self._vocab, self._seed, self._liked, self._liking = vocab, seed, list(liked), liking

    def __call__(self, ids: Sequence[int]) -> NDArray[np.float32]:
        dice = np.random.default_rng([self._seed, *ids[-4:], len(ids)])
        logits = dice.standard_normal(self._vocab, dtype=np.float32)
        logits[self._liked] += self._liking
        return logits


def written(constraint: Constraint, model: Noise, *, forced: bool, most: int = 20_000) -> tuple[list[int], int]:
    """Greedy decoding: the tokens, and how many of them the model was asked for."""
    ids: list[int] = []
    asked = 0
    while not constraint.over:
        assert len(ids) < most
        tokens = constraint.forced() if forced else []
        if not tokens:
            logits = model(ids)
            constraint.mask(logits)
            tokens = [int(logits.argmax())]
            asked += 1
        for token in tokens:
            constraint.take(token)
            ids.append(token)
    return ids, asked


def check(text: str, schema: dict[str, Any]) -> None:
    """It fits; its fields are in order; between its strings there are no blanks but the two that json.dumps writes."""
    values = reply.read(text, schema)
    assert list(values) == list(schema["properties"])
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert not re.search(r"[,:](?! )|(?<![,:])\s|\s\s", bare)


@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize("name", [name for name in SCHEMAS if not name.endswith("32")])
def test_every_schema_of_the_loop(small: tuple[Tokenizer, Grammars], name: str, forced: bool) -> None:
    tokenizer, grammars = small
    schema = SCHEMAS[name]
    for seed in range(2):
        model = Noise(VOCAB, seed, [ord('"'), ord("]"), ord("}")])
        ids, asked = written(grammars.start(schema), model, forced=forced)
        check(tokenizer.decode(ids), schema)
        assert asked < len(ids) if forced else asked == len(ids)
        assert set(ids).isdisjoint(tokenizer.added)


@pytest.mark.parametrize("forced", [True, False])
def test_real_tokenizer(qwen3: tuple[Tokenizer, Grammars], forced: bool) -> None:
    tokenizer, grammars = qwen3
    quotes = tokenizer.encode('"') + tokenizer.encode('",') + tokenizer.encode('"}')
    for seed, schema in enumerate((SCHEMAS["verify-True-4"], SCHEMAS["next-True-1"])):
        ids, asked = written(grammars.start(schema), Noise(QWEN3_VOCAB, seed, quotes, 4.0), forced=forced)
        check(tokenizer.decode(ids), schema)
        assert asked < len(ids) if forced else asked == len(ids)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name.endswith("32")])
def test_long_plans_compile(small: tuple[Tokenizer, Grammars], name: str) -> None:
    assert small[1].start(SCHEMAS[name]).forced()


def follow(constraint: Constraint, ids: Sequence[int]) -> list[list[int]]:
    """Takes the tokens; what was forced on the way. A forced token must be the very one that is taken."""
    found = []
    at = 0
    while at < len(ids):
        tokens = constraint.forced()
        if tokens:
            assert list(ids[at : at + len(tokens)]) == tokens
            found.append(tokens)
        for token in tokens or ids[at : at + 1]:
            constraint.take(token)
            at += 1
    assert constraint.over
    return found


VERDICT = {
    "start": "A red cup",
    "during": "机器人 🤖",
    "candidate": 'it says "x"\n',
    "change": "",
    "count_start": None,
    "count_candidate": 12,
    "verdict": "not_done",
}


def test_forced_tokens_are_the_tokenizers_own(qwen3: tuple[Tokenizer, Grammars]) -> None:
    """Of the reply as json.dumps writes it, the forced tokens are those that encode gives, and most of it is forced."""
    tokenizer, grammars = qwen3
    ids = tokenizer.encode(json.dumps(VERDICT, ensure_ascii=False))
    found = follow(grammars.start(SCHEMAS["verify-True-4"]), ids)
    texts = [tokenizer.decode(tokens) for tokens in found]
    assert texts[0] == '{"start":'
    assert ' "during":' in texts
    assert texts[-1].endswith('"}')
    assert sum(map(len, found)) >= 28


def test_a_forced_schema_needs_no_model(small: tuple[Tokenizer, Grammars]) -> None:
    """Where there is no choice, masking alone comes to the same text."""
    tokenizer, grammars = small
    schema = {
        "type": "object",
        "properties": {"a": {"const": True}, "b": {"enum": ["only"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    with_forced, asked = written(grammars.start(schema), Noise(VOCAB, 0, []), forced=True)
    masked, _ = written(grammars.start(schema), Noise(VOCAB, 0, []), forced=False)
    assert asked == 0
    assert tokenizer.decode(with_forced) == tokenizer.decode(masked) == '{"a": true, "b": "only"}'


def may_follow(constraint: Constraint) -> set[int]:
    logits = np.zeros(VOCAB, np.float32)
    constraint.mask(logits)
    assert set(logits[np.isfinite(logits)]) == {0.0}
    return set(np.flatnonzero(np.isfinite(logits)).tolist())


class TestMask:
    def at(self, grammars: Grammars, text: bytes, schema: dict[str, Any]) -> Constraint:
        constraint = grammars.start(schema)
        for byte in text:
            constraint.take(byte)
        return constraint

    def test_bounds(self, small: tuple[Tokenizer, Grammars]) -> None:
        grammars = small[1]
        count = {"type": ["integer", "null"], "minimum": 0, "maximum": 19}
        assert may_follow(self.at(grammars, b"", count)) == set(b"0123456789n")
        assert ord("9") in may_follow(self.at(grammars, b"1", count))
        assert self.at(grammars, b"2", count).over
        assert may_follow(self.at(grammars, b"n", count)) == set(b"u")
        text = {"type": "string", "maxLength": 2}
        assert may_follow(self.at(grammars, '"é'.encode(), text)) >= set(b'ab"\\')
        assert may_follow(self.at(grammars, '"éa'.encode(), text)) == set(b'"')
        several = {"type": "array", "items": {"const": 1}, "maxItems": 2}
        assert may_follow(self.at(grammars, b"[1", several)) == set(b",]")
        assert may_follow(self.at(grammars, b"[1, 1", several)) == set(b"]")

    def test_one_spelling(self, small: tuple[Tokenizer, Grammars]) -> None:
        grammars = small[1]
        schema = SCHEMAS["review-True-4"]
        assert may_follow(grammars.start(schema)) == set(b"{")
        assert may_follow(self.at(grammars, b"{", schema)) == set(b'"')
        assert may_follow(self.at(grammars, b'{"omitted"', schema)) == set(b":")
        assert may_follow(self.at(grammars, b'{"omitted":', schema)) == set(b" ")
        assert may_follow(self.at(grammars, b'{"omitted": ', schema)) == set(b"[")
        assert may_follow(self.at(grammars, b'{"omitted": [', schema)) == set(b"{]")

    def test_texts_are_whole_characters(self, small: tuple[Tokenizer, Grammars]) -> None:
        """Neither half a surrogate pair nor a byte that is no UTF-8 can be written."""
        grammars, text = small[1], {"type": "string", "maxLength": 9}
        assert may_follow(self.at(grammars, b'"', text)).isdisjoint(
            [*range(32), 127, *range(128, 194), *range(245, 256)]
        )
        assert may_follow(self.at(grammars, b'"\\u', text)) == set(b"0")
        assert max(may_follow(self.at(grammars, b'"\xed', text))) == 0x9F
        assert may_follow(self.at(grammars, b'"\xc3', text)) == set(range(0x80, 0xC0))

    def test_no_control_token_inside_a_text(self, small: tuple[Tokenizer, Grammars]) -> None:
        tokenizer, grammars = small
        allowed = may_follow(self.at(grammars, b'"', {"type": "string", "maxLength": 99}))
        assert allowed.isdisjoint(tokenizer.added)
        assert allowed.isdisjoint(range(tokenizer.size, VOCAB))  # padding
        assert allowed >= set(b"ab<|>")

    def test_nothing_after_the_end(self, small: tuple[Tokenizer, Grammars]) -> None:
        constraint = self.at(small[1], b'{"omitted": []', SCHEMAS["review-True-4"])
        assert not constraint.over
        constraint.take(ord("}"))
        assert constraint.over
        assert constraint.forced() == []
        with pytest.raises(UsageError, match="over"):
            constraint.mask(np.zeros(VOCAB, np.float32))
        with pytest.raises(UsageError, match="over"):
            constraint.take(ord("}"))

    def test_an_end_token_where_there_may_be_more(self, small: tuple[Tokenizer, Grammars]) -> None:
        tokenizer, grammars = small
        constraint = self.at(grammars, b"1", {"type": "integer"})
        assert not constraint.over
        end = tokenizer.id_of("<|im_end|>")
        assert end in may_follow(constraint)
        constraint.take(end)
        assert constraint.over

    @pytest.mark.parametrize("token", [ord("x"), 300, VOCAB - 1, 258])
    def test_a_token_that_may_not_come(self, small: tuple[Tokenizer, Grammars], token: int) -> None:
        constraint = small[1].start(SCHEMAS["review-True-4"])
        with pytest.raises(CompassError, match=r"within its schema.*\.$"):
            constraint.take(token)
        assert not constraint.over  # it failed, which is no end
        for again in (constraint.forced, lambda: constraint.mask(np.zeros(VOCAB, np.float32))):
            with pytest.raises(CompassError, match="left it"):
                again()

    @pytest.mark.parametrize("token", [VOCAB, -1, 1 << 40])
    def test_a_token_of_nothing(self, small: tuple[Tokenizer, Grammars], token: int) -> None:
        with pytest.raises(UsageError, match=f"512, and {token} came"):
            small[1].start(SCHEMAS["review-True-4"]).take(token)

    def test_numbers_that_are_none(self, small: tuple[Tokenizer, Grammars]) -> None:
        constraint = small[1].start(SCHEMAS["review-True-4"])
        nan = np.zeros(VOCAB, np.float32)
        nan[7] = np.nan
        with pytest.raises(CompassError, match="NaN"):
            constraint.mask(nan)
        with pytest.raises(CompassError, match="-inf"):
            constraint.mask(np.full(VOCAB, -np.inf, np.float32))
        only_others = np.full(VOCAB, 5.0, np.float32)
        only_others[ord("{")] = -np.inf
        with pytest.raises(CompassError, match="-inf"):
            constraint.mask(only_others)
        for shape in ((VOCAB - 1,), (1, VOCAB)):
            with pytest.raises(UsageError, match="shape"):
                constraint.mask(np.zeros(shape, np.float32))
        assert may_follow(constraint) == set(b"{")


class TestGrammars:
    def test_widths(self, small: tuple[Tokenizer, Grammars]) -> None:
        tokenizer = small[0]
        with pytest.raises(IntegrityError, match="273 tokens"):
            Grammars(tokenizer, 272)
        for vocab in (273, 288, 289, 320):  # not only whole words of the mask
            grammars = Grammars(tokenizer, vocab)
            logits = np.zeros(vocab, np.float32)
            grammars.start({"type": "boolean"}).mask(logits)
            assert np.flatnonzero(np.isfinite(logits)).tolist() == sorted(b"ft")

    def test_no_end(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        (tmp_path / "tokenizer_config.json").unlink()
        with pytest.raises(IntegrityError, match="ends a reply"):
            Grammars(Tokenizer(tmp_path), VOCAB)

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            {"not": {"type": "string"}},
            {"type": "string", "format": "no-such-format"},
            {"type": "nothing"},
            {"type": "integer", "minimum": 5, "maximum": 4},
            {"$ref": "#/nowhere"},
            {"type": "string", "pattern": "("},
        ],
    )
    def test_schemas_that_do_not_compile(self, small: tuple[Tokenizer, Grammars], schema: dict[str, Any]) -> None:
        for _ in range(2):  # nor the second time, from what is kept
            with pytest.raises(UsageError, match=r"cannot be compiled: .+\.$"):
                small[1].start(schema)

    def test_the_last_few_are_kept(self, small: tuple[Tokenizer, Grammars], monkeypatch: pytest.MonkeyPatch) -> None:
        grammars = Grammars(small[0], VOCAB)
        compiled: list[str] = []
        compile_it = grammars._compile

        def counted(schema: str) -> Any:
            compiled.append(schema)
            return compile_it(schema)

        monkeypatch.setattr(grammars, "_compile", counted)
        kept = constraint_module._KEPT
        schemas = [{"type": "integer", "minimum": 0, "maximum": most} for most in range(kept + 1)]
        for schema in (*schemas, schemas[1], schemas[-1]):
            grammars.start(schema)
        assert len(compiled) == kept + 1
        grammars.start(schemas[0])  # it was the oldest
        assert len(compiled) == kept + 2

    def test_replies_do_not_disturb_each_other(self, small: tuple[Tokenizer, Grammars]) -> None:
        grammars, schema = small[1], SCHEMAS["review-True-4"]
        one, other = grammars.start(schema), grammars.start(schema)
        one.take(ord("{"))
        assert may_follow(other) == set(b"{")
        assert may_follow(one) == set(b'"')
        reordered = {"type": "object", "properties": {"b": {"const": 1}, "a": {"const": 2}}, "required": ["b", "a"]}
        again = {**reordered, "properties": {"a": {"const": 2}, "b": {"const": 1}}}
        texts = []
        for fields in (reordered, again):
            closed = {**fields, "additionalProperties": False}
            texts.append(small[0].decode(written(grammars.start(closed), Noise(VOCAB, 0, []), forced=True)[0]))
        assert texts == ['{"b": 1, "a": 2}', '{"a": 2, "b": 1}']

    def test_several_threads(self, small: tuple[Tokenizer, Grammars]) -> None:
        _, grammars = small
        schema = SCHEMAS["verify-True-1"]
        model = Noise(VOCAB, 3, [ord('"')])
        expected = written(grammars.start(schema), model, forced=True)
        found: list[Any] = []
        threads = [
            threading.Thread(target=lambda: found.append(written(grammars.start(schema), model, forced=True)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 4
