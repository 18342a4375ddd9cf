"""The scanner of a streamed object: wherever the stream is cut, it gives what the whole object has."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_edge.roles.fields import Fields
from compass_edge.roles.reply import MAX_BYTES, MAX_DEPTH

WRITABLE = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WRITABLE
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(WRITABLE, inner), max_leaves=8)
OBJECTS = st.dictionaries(WRITABLE, VALUES, max_size=6)
STYLES = st.sampled_from([{}, {"ensure_ascii": False}, {"indent": 2}, {"separators": (",", ":")}])


def fed(*pieces: str) -> list[tuple[str, Any]]:
    fields = Fields()
    return [found for piece in pieces for found in fields.feed(piece)]


@given(OBJECTS, STYLES, st.data())
def test_any_split_gives_the_whole_object(value: dict[str, Any], style: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, **style)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert fed(*pieces) == list(json.loads(text).items())
    assert fed(*text) == list(json.loads(text).items())


def test_a_field_comes_as_soon_as_it_cannot_change() -> None:
    fields = Fields()
    stream = [
        ('{"a": "x', []),
        ('\\"y', []),
        ('"', [("a", 'x"y')]),
        (', "b": 1', []),
        ("2", []),
        (" ", []),
        (",", [("b", 12)]),
        ('"c":[{"d":"]}"}', []),
        ("]", [("c", [{"d": "]}"}])]),
        (', "e" : nul', []),
        ("l", []),
        ("}", [("e", None)]),
        (', "f": 1}', []),
    ]
    for piece, found in stream:
        assert fields.feed(piece) == found


def test_several_fields_in_one_piece_come_in_order() -> None:
    assert fed('{"b": 1, "a": [], "c": "x"') == [("b", 1), ("a", []), ("c", "x")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('["a", 1]', []),
        ('"a"', []),
        ('x {"a": 1}', []),
        ('{"a": 1} {"b": 2}', ["a"]),
        ('{"a": 1} "b": 2, "c": 3}', ["a"]),
        ('{"a": "x"} "b": 2, "c": 3}', ["a"]),
        ('{"a": 1, "a": 2, "b": 3}', ["a"]),
        ('{"a": 1 "b": 2, "c": 3}', []),
        ('{"a": "1" "b": 2, "c": 3}', ["a"]),
        ('{"a": 1,, "b": 2}', ["a"]),
        ('{, "a": 1}', []),
        ('{"a": , "b": 2}', []),
        ('{"a" 1, "b": 2}', []),
        ('{a: 1, "b": 2}', []),
        ('{"a": NaN, "b": 2}', []),
        ('{"a": 1e999, "b": 2}', []),
        ('{"a": [}, "b": 2}', []),
        ('{"a": "\\x", "b": 2}', []),
        ('{"a": "\\ud800", "b": 2}', []),
        ('{"a": {"x": 1, "x": 2}, "b": 2}', []),
        ('{"a": "tab\t", "b": 2}', []),
        ('{"a": 1, "b": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + ', "c": 1}', ["a"]),
    ],
)
def test_after_malformed_text_it_is_silent(text: str, kept: list[str]) -> None:
    assert [name for name, _ in fed(*text, ', "z": 1', "}")] == kept
    assert [name for name, _ in fed(text, ', "z": 1', "}")] == kept


def test_it_goes_as_deep_as_a_reply_may() -> None:
    deepest = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert [name for name, _ in fed('{"a": ' + deepest + "}")] == ["a"]


def test_it_reads_no_more_than_a_reply_may_have() -> None:
    fields, half = Fields(), "x" * (MAX_BYTES // 2)
    assert fields.feed('{"a": "' + half + '",') == [("a", half)]
    assert fields.feed('"b": "' + half + '",') == []
    assert fields.feed('"c": 1}') == []


@pytest.mark.parametrize("words", ["\\", '\\"', '"\\', "\\\\", '\\\\"', "\\u0041", "/", "\x7f🤖\u2028"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_escapes(words: str, ascii_only: bool) -> None:
    value = {words: words, "list": [words], "end": 1}
    assert fed(*json.dumps(value, ensure_ascii=ascii_only)) == list(value.items())


@given(st.lists(st.text(alphabet='{}[]",:\\u0dt1e-.n \ud800') | st.text()))
def test_any_text_is_survived(pieces: list[str]) -> None:
    fed(*pieces)


@pytest.mark.parametrize("body", ['"' + "\\n" * 30_000, "[" + "1," * 30_000, "1" * 60_000, " " * 60_000])
def test_it_takes_linear_time_letter_by_letter(body: str) -> None:
    begun = time.process_time()
    fed(*('{"a":' + body))
    assert time.process_time() - begun < 5  # quadratic: minutes
