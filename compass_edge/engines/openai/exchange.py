"""One request and its reply: no retries here, and no opinion about what the reply says."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compass_edge.engines.openai.completion import Piece, read_piece
from compass_edge.engines.openai.connection import body_of, request
from compass_edge.engines.openai.endpoint import Endpoint
from compass_edge.engines.openai.event_stream import events
from compass_edge.engines.openai.faults import Final, Passing, of_status, server_words
from compass_edge.engines.openai.patience import Patience
from compass_edge.engines.openai.writing import Writing

MAX_STREAM = 16 << 20  # bytes on the wire: a few hundred for each of 8192 tokens, and room for thinking
MAX_WHOLE = 4 << 20
MAX_ERROR = 64 << 10


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    finish: str = ""  # as the server calls it; "length" is a reply that was cut off
    runaway: str = ""  # why it was stopped here, if it was
    unwrapped: bool = False


def exchange(
    endpoint: Endpoint, body: bytes, longest: int | None, on_piece: Callable[[str], None], patience: Patience
) -> Answer:
    """Streams the reply. Raises where the server gives none, or not all of one."""
    path = f"{endpoint.parts.path}/chat/completions"
    with request(endpoint, "POST", path, patience, body) as response:
        if response.status != 200:
            raise failed(response)
        return _written(_pieces(response), Writing(longest), on_piece)


def failed(response: http.client.HTTPResponse) -> Exception:
    said = b"".join(body_of(response, MAX_ERROR))
    return of_status(response.status, response.reason, said, response.getheader("Retry-After"))


def _pieces(response: http.client.HTTPResponse) -> Iterator[Piece]:
    """Ends after the last piece of a reply that is complete by the server's own word: its reason to finish, or [DONE]."""
    kind, encoding = response.headers.get_content_type(), response.getheader("Content-Encoding", "identity")
    if encoding != "identity":
        raise Final(f"sent a reply encoded as {encoding}, which was not asked for.")
    if kind == "application/json":  # it does not stream
        yield read_piece(_text(b"".join(body_of(response, MAX_WHOLE))))
        return
    if kind != "text/event-stream":
        said = server_words(next(body_of(response, MAX_WHOLE), b""))
        raise Final(
            f"sent {kind} where a reply was expected: {said} Is something else in front of it, such as a login?"
        )
    over = False
    for data in events(body_of(response, MAX_STREAM)):
        if data.strip() == "[DONE]":
            return
        piece = read_piece(data)
        over = over or bool(piece.finish)
        yield piece
    if not over:
        raise Passing("ended the stream before the reply was over.")


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Passing(f"sent a reply that is not UTF-8: {error}.") from error


def _written(pieces: Iterator[Piece], writing: Writing, on_piece: Callable[[str], None]) -> Answer:
    text, finish, thought = "", "", False
    for piece in pieces:
        thought = thought or piece.thought
        finish = piece.finish or finish
        if clean := writing.feed(piece.text) if piece.text else "":
            text += clean
            on_piece(clean)
        if writing.runaway:
            break
    if rest := writing.end():
        text += rest
        on_piece(rest)
    if not text.strip() and not writing.runaway:
        raise _nothing(finish, thought or writing.unwrapped)
    return Answer(text, finish, writing.runaway, writing.unwrapped)


def _nothing(finish: str, thought: bool) -> Final:
    if thought:
        spent = "and spent max_tokens on it" if finish == "length" else "and wrote nothing else"
        return Final(
            f"let the model think {spent}. Switch thinking off, for instance by chat_template_kwargs in extra_body."
        )
    return Final(f"sent an empty reply, finished as {finish or 'nothing it names'!r}.")
