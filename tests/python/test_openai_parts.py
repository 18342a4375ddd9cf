"""The parts of the client, each alone: the stream, what is around a reply, what does not end, the endpoint, the picture."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_server import stream

from compass_edge.engines.openai import NO_THINKING, Endpoint
from compass_edge.engines.openai.body import request_body
from compass_edge.engines.openai.completion import read_piece
from compass_edge.engines.openai.event_stream import events
from compass_edge.engines.openai.runaway import MAX_BLANK, Runaway, longest_string
from compass_edge.engines.openai.told import Told
from compass_edge.engines.openai.writing import Writing
from compass_edge.engines.picture_url import picture_url
from compass_edge.errors import UsageError
from compass_edge.models import Image, Question
from compass_edge.roles.orienter import first
from compass_edge.roles.schema import choice, record, several, whole, words

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@st.composite
def cuts(draw: Any, data: Any) -> list[Any]:
    """The data in pieces, cut anywhere."""
    places = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=30))})
    return [data[a:b] for a, b in pairwise(places)]


@given(st.data())
def test_a_stream_gives_the_same_text_however_it_is_cut(data: st.DataObject) -> None:
    texts = data.draw(st.lists(TEXT, max_size=6))
    written = stream(*texts).replace(b"\n", data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    told = list(events(data.draw(cuts(written))))
    assert told.pop() == "[DONE]"
    assert "".join(read_piece(event).text for event in told) == "".join(texts)


@given(st.data())
def test_unwrapping_gives_the_same_text_however_it_is_cut(data: st.DataObject) -> None:
    reply = json.dumps({"said": data.draw(TEXT), "```": [{"}": "```"}]}, ensure_ascii=data.draw(st.booleans()))
    thought = data.draw(TEXT).replace("</think>", "")
    before = data.draw(st.sampled_from(["", f"<think>{thought}</think>", f"x{thought}</think>\n"]))
    fence = data.draw(st.sampled_from([("", ""), ("```json\n", "\n```"), ("```", " ```\n")]))
    writing = Writing(None)
    given_back = "".join(writing.feed(piece) for piece in data.draw(cuts(before + fence[0] + reply + fence[1])))
    assert given_back + writing.end() == reply
    assert writing.unwrapped == bool(before or fence[0])
    assert not writing.runaway


@given(st.data())
def test_a_reply_that_fits_never_counts_as_runaway(data: st.DataObject) -> None:
    value = {
        "said": data.draw(TEXT),
        "kind": data.draw(st.sampled_from(["a", "bb"])),
        "parts": data.draw(st.lists(st.fixed_dictionaries({"n": st.integers(0, 99)}), max_size=5)),
    }
    schema = record(said=words(60), kind=choice("a", "bb"), parts=several(record(n=whole(0, 99)), 5))
    written = json.dumps(value, indent=data.draw(st.sampled_from([None, 0, 8])), ensure_ascii=data.draw(st.booleans()))
    runaway = Runaway(longest_string(schema))
    assert runaway.feed(written + "\n") == len(written)
    assert runaway.closed
    assert not runaway.why


@given(st.data())
def test_a_listener_hears_the_longest_text_once(data: st.DataObject) -> None:
    text, heard = data.draw(TEXT), list[str]()
    told = Told(heard.append)
    for stop in [*data.draw(st.lists(st.integers(0, len(text)), max_size=3)), len(text)]:
        told.again()
        for piece in data.draw(cuts(text[:stop])):
            told.piece(piece)
    assert "".join(heard) == told.text == text


@pytest.mark.parametrize(
    ("schema", "longest"),
    [
        (record(said=words(40), kind=choice("a" * 50, "b")), 50),
        (record(a_name_that_is_longer=words(3)), 21),
        (several(record(said=words(7)), 3), 7),
        ({"anyOf": [words(3), {"const": "four"}, {"type": "null"}]}, 4),
        ({"type": ["string", "null"], "maxLength": 9}, 9),
        ({"type": "string"}, None),
        ({"type": "object", "properties": {"a": words(3)}}, None),
        ({"type": "array"}, None),
        ({}, None),
    ],
)
def test_the_longest_string(schema: dict[str, Any], longest: int | None) -> None:
    assert longest_string(schema) == longest


def test_the_roles_bound_their_strings() -> None:
    assert longest_string(first("Do it.", Image("a"), tau=True, max_steps=8).schema) is not None


@pytest.mark.parametrize(
    "text", ["{" + " " * (MAX_BLANK + 1), '{"a": 1}' + "\n" * (MAX_BLANK + 1), '{"a":' + "\t" * 300]
)
def test_endless_whitespace(text: str) -> None:
    runaway = Runaway(None)
    runaway.feed(text[:-1])
    runaway.feed(text[-1])
    assert "whitespace" in runaway.why
    fine = Runaway(None)
    fine.feed(json.dumps({"a": " " * 5000}) + "\n" * MAX_BLANK)
    assert not fine.why


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "127.0.0.1:8080"}, "must look like"),
        ({"url": "ftp://127.0.0.1/v1"}, "must look like"),
        ({"url": "http:///v1"}, "must look like"),
        ({"url": "http://127.0.0.1:99999/v1"}, "must look like"),
        ({"url": "http://127.0.0.1:0/v1"}, "must look like"),
        ({"url": "http://127.0.0.1/v1\r\nHost: a"}, "must look like"),
        ({"url": "http://[::1/v1"}, "must look like"),
        ({"url": None}, "must look like"),
        ({"url": "https://me:secret@host/v1"}, "a user or a password"),
        ({"url": "https://host/v1?key=1"}, "a query"),
        ({"url": "http://10.0.0.7:8000/v1"}, "unencrypted"),
        ({"url": "http://localhost.example.com/v1"}, "unencrypted"),
        ({"model": " "}, "the name of the model"),
        ({"concurrency": 0}, "concurrency must be a whole number from 1"),
        ({"concurrency": True}, "concurrency must be a whole number"),
        ({"retries": -1}, "retries must be"),
        ({"retries": 1.5}, "retries must be"),
        ({"deadline_s": 0}, "deadline_s must be a number of seconds"),
        ({"deadline_s": float("inf")}, "deadline_s must be"),
        ({"connect_timeout_s": "5"}, "connect_timeout_s must be"),
        ({"backoff_s": float("nan")}, "backoff_s must be"),
        ({"dialect": "guided_json"}, "one of json_schema, vllm, llama, none"),
        ({"picture_format": "webp"}, "one of jpeg, png"),
        ({"jpeg_quality": 101}, "jpeg_quality must be"),
        ({"max_side": -1}, "max_side must be"),
        ({"extra_body": {"stream": False}}, "leave stream to the client"),
        ({"extra_body": {"a": object()}}, "fields with JSON values"),
        ({"extra_body": [1]}, "fields with JSON values"),
    ],
)
def test_an_endpoint_is_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        Endpoint(**{"url": "http://127.0.0.1:8080/v1", "model": "m", **options})
    assert "secret" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "url", ["http://[::1]:80/v1", "http://localhost:8080/v1/", "https://example.com", "http://127.9.9.9"]
)
def test_endpoints_that_are_fine(url: str) -> None:
    assert not Endpoint(url, "m").url.endswith("/")
    assert Endpoint("http://10.0.0.7/v1", "m", allow_remote_http=True).port == 80


def test_a_name_has_what_changes_the_reply_and_nothing_else() -> None:
    plain = Endpoint("http://127.0.0.1:1/v1", "m")
    same = Endpoint("http://127.0.0.1:1/v1/", "m", deadline_s=1, retries=9, concurrency=3, connect_timeout_s=1)
    others: list[dict[str, Any]] = [
        {"dialect": "none"},
        {"max_side": 0},
        {"jpeg_quality": 50},
        {"picture_format": "png"},
        {"extra_body": {}},
        {"url": "http://127.0.0.1:2/v1"},
        {"model": "n"},
    ]
    names = {Endpoint(**{"url": plain.url, "model": "m", **other}).name for other in others}
    assert same.name == plain.name
    assert asdict(plain)["extra_body"] == NO_THINKING
    assert len(names | {plain.name}) == len(others) + 1


def decoded(url: str) -> np.ndarray[Any, Any]:
    kind, _, data = url.partition(";base64,")
    codec = {"data:image/png": "png", "data:image/jpeg": "mjpeg"}[kind]
    packet = av.Packet(base64.b64decode(data, validate=True))
    return av.CodecContext.create(codec, "r").decode(packet)[0].to_ndarray(format="rgb24")


def picture(height: int, width: int) -> np.ndarray[Any, Any]:
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 // width, y * 255 // height, 255 - x * 255 // width], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("size", [(48, 64), (47, 63), (1, 1), (3, 200)])
def test_pictures(size: tuple[int, int]) -> None:
    pixels = picture(*size)
    assert (decoded(picture_url(Image("a", pixels), "png")) == pixels).all()
    assert (decoded(picture_url(Image("a", pixels[:, ::-1]), "png")) == pixels[:, ::-1]).all()
    shown = decoded(picture_url(Image("a", pixels), "jpeg"))
    assert shown.shape == pixels.shape
    if min(size) > 40:
        assert np.abs(shown.astype(int) - pixels).mean() < 5
    assert picture_url(Image("a", pixels)) == picture_url(Image("b", pixels.copy()))
    small = decoded(picture_url(Image("a", pixels), "png", max_side=32))
    assert max(small.shape[:2]) == min(32, max(size))
    if size[0] == 48:
        assert np.abs(small.astype(int) - pixels[::2, ::2]).mean() < 5
        assert len(picture_url(Image("a", pixels), quality=20)) < len(picture_url(Image("a", pixels), quality=95))


class Frame:
    def rgb(self) -> np.ndarray[Any, Any]:
        return picture(8, 8)


def test_a_frame_is_a_picture() -> None:
    assert picture_url(Image("a", Frame())) == picture_url(Image("a", picture(8, 8)))


@pytest.mark.parametrize(
    ("pixels", "said"),
    [
        (None, "came without any"),
        (7, "int came"),
        (np.zeros((4, 4), np.uint8), r"uint8 \(4, 4\) came"),
        (np.zeros((4, 4, 4), np.uint8), "came"),
        (np.zeros((4, 4, 3), np.float32), "float32"),
        (np.zeros((0, 4, 3), np.uint8), "came"),
    ],
)
def test_what_is_no_picture(pixels: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        picture_url(Image("a", pixels))


def test_parts_stay_in_reading_order() -> None:
    image = Image("a", picture(4, 4))
    body = json.loads(
        request_body(Endpoint("http://127.0.0.1/v1", "m"), Question(("a", "b", image, image, "c"), {"type": "object"}))
    )
    content = body["messages"][0]["content"]
    assert [part.get("text", part["type"]) for part in content] == ["ab", "image_url", "image_url", "c"]
    assert content[1]["image_url"]["url"].startswith("data:image/jpeg;base64,")
