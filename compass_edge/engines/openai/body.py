"""A question as the body of a chat completion request."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from compass_edge.engines.openai.endpoint import Endpoint
from compass_edge.engines.picture_url import picture_url
from compass_edge.models import Image, Question

SEED = 0


def request_body(endpoint: Endpoint, question: Question) -> bytes:
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": _content(endpoint, question)}],
        "stream": True,
        "temperature": 0,
        "seed": SEED,
        "max_tokens": question.max_tokens,
        **_constraint(endpoint, question),
        **endpoint.extra_body,
    }
    return json.dumps(body, separators=(",", ":")).encode("ascii")


def _constraint(endpoint: Endpoint, question: Question) -> dict[str, Any]:
    match endpoint.dialect:
        case "json_schema":
            named = {"name": "reply", "schema": question.schema, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case "vllm":
            return {"structured_outputs": {"json": question.schema}}
        case "llama":
            return {"json_schema": question.schema}
        case _:
            return {}


def _content(endpoint: Endpoint, question: Question) -> str | list[dict[str, Any]]:
    """Text alone is sent as text, which every server takes. Neighbouring texts become one: servers join them in their ways."""
    parts = list(question.parts)
    if endpoint.dialect == "none":
        schema = json.dumps(question.schema, ensure_ascii=False)
        parts.append(f"\nThe reply is one JSON object, without a code fence, that fits this JSON schema:\n{schema}\n")
    content: list[dict[str, Any]] = []
    for kind, group in groupby(parts, type):
        if kind is str:
            content.append({"type": "text", "text": "".join(str(part) for part in group)})
        else:
            content += [_picture(endpoint, part) for part in group if isinstance(part, Image)]
    return content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content


def _picture(endpoint: Endpoint, image: Image) -> dict[str, Any]:
    url = picture_url(image, endpoint.picture_format, max_side=endpoint.max_side, quality=endpoint.jpeg_quality)
    return {"type": "image_url", "image_url": {"url": url}}
