"""Schemas of replies, from bounded blocks: no reply can be longer than its question foresees.

They use only the keywords that constrained decoders know (type, enum, bounds, fixed fields): the same schema drives the
decoding and checks the result. Fields are written in the order in which they are given here.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def words(limit: int) -> Schema:
    """Free text. It may be empty: whether it must not be depends on the rest of the reply."""
    return {"type": "string", "maxLength": limit}


def choice(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def whole_or_null(least: int, most: int) -> Schema:
    return {**whole(least, most), "type": ["integer", "null"]}


def flag() -> Schema:
    return {"type": "boolean"}


def several(items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "maxItems": most}


def record(**fields: Schema) -> Schema:
    """An object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
