"""Text from outside, fenced: a quoted string on one line, which cannot pass for the prompt around it.

An instruction, a plan and a memory are written by people and models. None of them may open a section of the prompt, end
its own quotes, or smuggle in a token that a chat template understands (`<|im_end|>` and its like).
"""

from __future__ import annotations

import json

# JSON leaves these as they are; to a reader some end a line, and '<' begins every control token that we know of.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<\x7f\x85\u2028\u2029"}


def quote(text: str, limit: int) -> str:
    """A JSON string with at most `limit` characters of the text."""
    writable = text.encode("utf-8", "replace").decode()
    kept = writable if len(writable) <= limit else writable[: limit - 1] + "…"
    return json.dumps(kept, ensure_ascii=False).translate(_ESCAPES)
