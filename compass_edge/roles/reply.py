"""A model's reply, from text to checked values. Whatever the text is, it is read or refused in one way: InvalidReply."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NoReturn

from jsonschema import Draft202012Validator

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_DIGITS = 100
_SHOWN = 80  # characters of a wrong value that a message repeats
# A string, closed or not, or a bracket: always matches where it starts, so the scan is linear.
_NESTING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
# They parse, and then cannot be written: a lone surrogate has no UTF-8, a NUL ends a C string.
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


class InvalidReply(Exception):
    """The reply cannot be used. `detail` is one sentence that the model can be given to do better."""

    def __init__(self, trouble: Literal["schema", "meaning"], detail: str) -> None:
        super().__init__(detail)
        self.trouble: Literal["schema", "meaning"] = trouble
        self.detail = detail


def read(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The object that the text is, checked against the schema."""
    value = parse(text)
    check(value, schema)
    if not isinstance(value, dict):
        _refuse(f"The reply must be a JSON object, and {shown(value)} came.")
    return value


def parse(text: str) -> Any:
    """JSON and nothing besides, more strictly than `json.loads`: what two readers could read differently is refused."""
    if len(text) > MAX_BYTES or size(text) > MAX_BYTES:
        _refuse(f"The reply must be at most {MAX_BYTES} bytes long, and a longer one came.")
    depth = 0
    for match in _NESTING.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > MAX_DEPTH:
            _refuse(f"The reply must be nested at most {MAX_DEPTH} deep, and a deeper one came.")
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_short, parse_constant=_no_constant
        )
        _check_writable(value)
    except ValueError as error:
        _refuse(f"The reply must be one JSON object and nothing else, and this came instead: {error}.")
    return value


def check(value: Any, schema: Mapping[str, Any]) -> None:
    """Refuse a value that the schema does not allow, by the first error in the schema's own order."""
    error = next(_validator(json.dumps(schema)).iter_errors(value), None)
    if error is not None:
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.absolute_path).lstrip(".")
        _refuse(f"{f'The field {path}' if path else 'The reply'} must {_expectation(error)} came.")


def said(text: str, name: str) -> str:
    """Words that must not be empty, without the space around them."""
    stripped = text.strip()
    if not stripped:
        raise InvalidReply("meaning", f'"{name}" must say something, and it came empty.')
    return stripped


def size(text: str) -> int:
    """In bytes, for any string."""
    return len(text.encode("utf-8", "surrogatepass"))


def shown(value: Any) -> str:
    """A value as JSON, cut short."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= _SHOWN else written[:_SHOWN] + "..."


def _check_writable(value: Any) -> None:
    """Refuse the strings that nothing after us could hash, print or hand to C."""
    if isinstance(value, str):
        if _UNWRITABLE.search(value):
            raise ValueError("a NUL or half a surrogate pair in a string")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_writable(key)
            _check_writable(item)
    elif isinstance(value, list):
        for item in value:
            _check_writable(item)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read_pairs = dict(pairs)
    if len(read_pairs) != len(pairs):
        raise ValueError("an object with one field twice")
    return read_pairs


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number too large to hold")
    return value


def _short(text: str) -> int:
    if len(text) > MAX_DIGITS:  # converting takes quadratic time, and newer Pythons refuse some
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is not JSON")


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    return Draft202012Validator(json.loads(schema))


def _expectation(error: Any) -> str:
    limit, came = error.validator_value, error.instance
    match error.validator:
        case "type":
            return f"be of type {limit if isinstance(limit, str) else ' or '.join(limit)}, and {shown(came)}"
        case "required":
            missing = ", ".join(name for name in limit if name not in came)
            return f"have all of the fields {', '.join(limit)}, and one without {missing}"
        case "additionalProperties":
            known = error.schema["properties"]
            return f"have only the fields {', '.join(known)}, and {shown([name for name in came if name not in known])}"
        case "enum":
            return f"be one of {', '.join(limit)}, and {shown(came)}"
        case "minimum" | "maximum":
            return f"be at {'least' if error.validator == 'minimum' else 'most'} {limit}, and {shown(came)}"
        case "maxLength":
            return f"be at most {limit} characters long, and {len(came)}"
        case "maxItems":
            return f"have at most {limit} entries, and {len(came)}"
        case _:
            return f"satisfy {error.validator} {shown(limit)}, and {shown(came)}"


def _refuse(detail: str) -> NoReturn:
    raise InvalidReply("schema", detail)
