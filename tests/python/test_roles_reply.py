"""Reading a reply: what is let through, what is refused, and that nothing else ever happens."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compass_edge.roles import reply
from compass_edge.roles.reply import MAX_BYTES, MAX_DEPTH, InvalidReply
from compass_edge.roles.schema import choice, record, several, whole, whole_or_null, words

SCHEMA = record(
    name=words(5), count=whole(0, 9), maybe=whole_or_null(1, 3), kind=choice("a", "b"), many=several(whole(0, 1), 2)
)
GOOD = {"name": "cup", "count": 2, "maybe": None, "kind": "a", "many": [0, 1]}
ANYTHING: dict[str, object] = {}


def refused(text: str, schema: dict[str, object] = SCHEMA) -> str:
    with pytest.raises(InvalidReply) as caught:
        reply.read(text, schema)
    assert caught.value.trouble == "schema"
    assert str(caught.value) == caught.value.detail
    return caught.value.detail


def test_a_good_reply_is_read() -> None:
    assert reply.read(f" \n{json.dumps(GOOD)}\t\r\n", SCHEMA) == GOOD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "no json",
        '{"name": "cup"',
        "{'name': 'cup'}",
        '{"a": 1} {"b": 2}',
        '{"a": 1} and that is it',
        '```json\n{"a": 1}\n```',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": -1e999}',
        '{"a": 1, "a": 1}',
        '{"a": {"b": 1, "b": 2}}',
        '{"a": "\ttab"}',
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        '{"a": ["\\u0000"]}',
        '{"a": "\ud800"}',
        '{"a": ' + "1" * 101 + "}",
        "\ufeff{}",
        '{"a": "' + "x" * MAX_BYTES + '"}',
        '{"a": "' + "\u20ac" * (MAX_BYTES // 2) + '"}',
    ],
)
def test_what_is_not_strictly_json_is_refused(text: str) -> None:
    refused(text, ANYTHING)


def test_an_escaped_pair_of_surrogates_is_a_character() -> None:
    assert reply.read('{"a": "\\ud83e\\udd16"}', ANYTHING) == {"a": "🤖"}


@pytest.mark.parametrize("text", ["[]", "1", '"words"', "null", "true"])
def test_only_an_object_is_a_reply(text: str) -> None:
    assert "object" in refused(text, ANYTHING)


def test_nesting_is_bounded() -> None:
    def nested(depth: int) -> str:
        return '{"a": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}"

    assert reply.read(nested(MAX_DEPTH), ANYTHING)
    assert "deep" in refused(nested(MAX_DEPTH + 1), ANYTHING)
    assert "deep" in refused("[" * 50_000, ANYTHING)
    assert "deep" in refused('{"a":' * 10_000, ANYTHING)


def test_brackets_inside_strings_are_no_nesting() -> None:
    text = json.dumps({"a": '"[{\\' * 100})
    assert reply.read(text, ANYTHING) == json.loads(text)


@pytest.mark.parametrize("piece", ['"', "\\", '\\"', '"\\', "[]", "{}", '"[', "\\u", "1"])
def test_refusing_takes_linear_time(piece: str) -> None:
    begun = time.process_time()
    refused((piece * MAX_BYTES)[:MAX_BYTES], SCHEMA)
    assert time.process_time() - begun < 5  # quadratic: minutes


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"name": "teapot"}, "The field name must be at most 5 characters long, and 6 came."),
        ({"name": 3}, "The field name must be of type string, and 3 came."),
        ({"count": 10}, "The field count must be at most 9, and 10 came."),
        ({"count": -1}, "The field count must be at least 0, and -1 came."),
        ({"count": None}, "The field count must be of type integer, and null came."),
        ({"count": True}, "The field count must be of type integer, and true came."),
        ({"count": 1.5}, "The field count must be of type integer, and 1.5 came."),
        ({"maybe": "x"}, 'The field maybe must be of type integer or null, and "x" came.'),
        ({"maybe": 4}, "The field maybe must be at most 3, and 4 came."),
        ({"kind": "c"}, 'The field kind must be one of a, b, and "c" came.'),
        ({"many": [0, 1, 0]}, "The field many must have at most 2 entries, and 3 came."),
        ({"many": [0, 2]}, "The field many[1] must be at most 1, and 2 came."),
        ({"extra": 1}, 'The reply must have only the fields name, count, maybe, kind, many, and ["extra"] came.'),
    ],
)
def test_the_detail_says_what_was_expected_and_what_came(change: dict[str, object], detail: str) -> None:
    assert refused(json.dumps(GOOD | change)) == detail


@pytest.mark.parametrize("name", list(GOOD))
def test_every_field_is_required(name: str) -> None:
    detail = refused(json.dumps({key: value for key, value in GOOD.items() if key != name}))
    assert detail.endswith(f"and one without {name} came.")


def test_a_detail_stays_short() -> None:
    assert len(refused(json.dumps(GOOD | {"kind": "x" * 10_000}))) < 200


def test_a_schema_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []

    def compile_it(schema: object) -> object:
        compiled.append(schema)
        return validator(schema)

    validator = reply.Draft202012Validator
    monkeypatch.setattr(reply, "Draft202012Validator", compile_it)
    for _ in range(3):
        reply.read('{"once": "a"}', record(once=words(7)))
    assert len(compiled) == 1


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner),
)


@given(st.text(alphabet=st.characters()) | st.text(alphabet='{}[]",:\\u0dt1e-. ') | ANY_JSON.map(json.dumps))
@example('{"a": "\ud800"}')
@example("\ud800")
def test_any_text_is_read_or_refused(text: str) -> None:
    detail = "."
    try:
        assert reply.read(text, SCHEMA) == json.loads(text)
    except InvalidReply as error:
        detail = error.detail
    assert detail.endswith(".")
    assert detail.encode()
