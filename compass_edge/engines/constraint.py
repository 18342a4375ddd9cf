"""Decoding under a JSON schema: which tokens may come next, and which must (llguidance).

Replies have one spelling: fields in the schema's order, ", " and ": " between them, no other blanks. That is how
`json.dumps` writes, how the Qwen templates show JSON to their models, and it leaves the model less to decide than the
spelling without blanks: a quotation mark after a blank is a token of its own, where `":"` may become `":""` or `":"/` by
what follows (of a Verifier's reply, 28 of 46 tokens are forced instead of 15 of 34).

Forced tokens are what the tokenizer itself would make of the forced text, as far as that does not depend on what follows
it. A caller that appends them and one that only masks both get an object that fits the schema. They agree in the tokens
wherever the model would have written that same tokenization; a model that only obeys the mask may cut a field's name
otherwise (`{"` `start` or `{"s` `tart`), and whatever it then writes freely depends on what it has read. Both
agree in the text where the schema leaves no choice.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import CompassError, IntegrityError, UsageError

_KEPT = 16  # compiled schemas; the loop has six
_SPELLING = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "coerce_one_of": False,
    "lenient": False,
}
# Of each byte of a bit mask: the most that its eight tokens may have. A minimum with it is one pass without branches, ten
# times as fast as an assignment where a mask is true.
_ALLOWED = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little") == 1
_MOST = np.where(_ALLOWED, np.inf, -np.inf).astype(np.float32)


class Grammars:
    """JSON schemas compiled for one tokenizer, the last few kept. May be used from several threads."""

    def __init__(self, tokenizer: Tokenizer, vocab: int) -> None:
        """`vocab` is the width of the logits; it may be larger than the tokenizer (padded)."""
        if vocab < tokenizer.size:
            raise IntegrityError(
                f"A model's logits must be at least as wide as its tokenizer, which has {tokenizer.size} tokens, and "
                f"they are {vocab} wide. The two do not belong together: fetch or export the model again."
            )
        if not tokenizer.eos:
            raise IntegrityError(
                "A model's files must name the token that ends a reply (eos_token or eos_token_id), and none does. "
                "Fetch tokenizer_config.json and generation_config.json of the checkpoint."
            )
        self._vocab = vocab
        self._tokenizer = LLTokenizer(
            tokenizer.to_json(), n_vocab=vocab, eos_token=sorted(tokenizer.eos), slices=LLTokenizer.json_slices()
        )
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()
        self._lock = Lock()

    def start(self, schema: Mapping[str, Any]) -> Constraint:
        """A reply that has not begun yet."""
        key = json.dumps(schema)  # in its own order: the fields of a reply follow it
        with self._lock:
            matcher = self._compiled.get(key)
            if matcher is None:
                matcher = self._compiled[key] = self._compile(key)
                if len(self._compiled) > _KEPT:
                    self._compiled.popitem(last=False)
            self._compiled.move_to_end(key)
            return Constraint(matcher.deep_copy(), self._vocab)

    def _compile(self, schema: str) -> LLMatcher:
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides=_SPELLING)  # type: ignore[arg-type]
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise UsageError(
                "A reply's schema must use keywords that constrained decoding knows, and this one cannot be compiled: "
                f"{_short(matcher.get_error())}. Write it with the blocks of compass_edge.roles.schema."
            )
        return matcher


class Constraint:
    """Where a reply stands in its schema. Fed token by token."""

    def __init__(self, matcher: LLMatcher, vocab: int) -> None:
        self._matcher = matcher
        self._bits = np.zeros((vocab + 31) // 32, np.int32)
        self._bytes = self._bits.view(np.uint8)
        self._most = np.empty((self._bytes.size, 8), np.float32)
        self._row = self._most.reshape(-1)[:vocab]

    @property
    def over(self) -> bool:
        """The object is complete: nothing may follow (do not wait for an end token)."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def forced(self) -> list[int]:
        """Tokens that must come next whatever the model says, possibly none.

        The caller appends them in one pass and then calls `take` for each.
        """
        self._check()
        return [] if self.over else self._matcher.compute_ff_tokens()

    def mask(self, logits: NDArray[np.float32]) -> None:
        """One row, in place: what may not come becomes -inf."""
        if logits.shape != self._row.shape:
            raise UsageError(f"A row of logits must have the shape {self._row.shape}, and {logits.shape} came.")
        if self.over:
            raise UsageError("A reply that is over takes no further token. Ask `over` before `mask`.")
        self._check()
        if np.isnan(logits.max()):
            raise CompassError(
                "A model's logits must be numbers, and NaN came. Its weights are damaged, or it overflows."
            )
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        self._check()
        np.take(_MOST, self._bytes, axis=0, out=self._most, mode="clip")
        np.minimum(logits, self._row, out=logits)
        if logits.max() == -np.inf:
            raise CompassError(
                "A model's logits must leave one of the tokens that its schema allows, and all of those are -inf. "
                "Its weights are damaged, or it overflows."
            )

    def take(self, token: int) -> None:
        """A token that was sampled or forced."""
        if self.over:
            raise UsageError(
                f"A reply that is over takes no further token, and {token} came. Ask `over` before `take`."
            )
        if 0 <= token < self._row.size:
            self._matcher.consume_token(token)
            self._check()
        else:
            raise UsageError(f"A token must be below the width of the logits, {self._row.size}, and {token} came.")

    def _check(self) -> None:
        if self._matcher.is_error():
            raise CompassError(
                f"A reply must stay within its schema, and it left it: {_short(self._matcher.get_error())}. "
                "Sample only from masked logits."
            )


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 300 else line[:299] + "…"
