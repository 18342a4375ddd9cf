"""A checkpoint's chat template, rendered as transformers renders it, in jinja2's immutable sandbox.

A template is a program that came with the weights. It sees one conversation and nothing else, its output and its loops
are bounded, and whatever goes wrong inside it becomes a sentence. What the bounds do not stop is a template that is
hostile enough to nest loops for hours: a model's files are checked against a manifest before they get here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import jinja2.exceptions
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.runtime
import jinja2.sandbox
import jinja2.utils

from compass_edge.engines.json_file import CONFIG_BYTES, read_bytes, read_object, read_object_if_there
from compass_edge.errors import IntegrityError, UsageError

_TEMPLATE_BYTES = 1 << 20
_OUTPUT = 1 << 20  # characters that a template may write besides the texts it was given
_REPEATS = 1 << 16  # characters or items that "*" may make, and values of a range
_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_OURS = frozenset({"messages", "tools", "documents", "add_generation_prompt", "strftime_now"})

Content = str | Sequence[Mapping[str, str]]


class ChatTemplate:
    """chat_template.jinja, chat_template.json or the one in tokenizer_config.json: the first that is there."""

    def __init__(self, folder: Path) -> None:
        config = read_object_if_there(folder / "tokenizer_config.json")
        self.place, self.text = _find(folder, config)
        self._tokens = {name: spelled for name in _NAMED if (spelled := _spelling(config.get(name)))}
        try:
            self._template = _environment().from_string(self.text)
        except (jinja2.TemplateError, RecursionError, ValueError) as error:
            raise IntegrityError(
                f"{self.place} must hold a chat template that jinja2 understands, and it does not: {_short(error)}. "
                "Fetch the model's folder again."
            ) from error

    def render(self, content: Content, *, options: Mapping[str, object], generation: bool) -> str:
        """A conversation of one turn, the user's."""
        if taken := _OURS & options.keys():
            raise UsageError(
                f"Options of a chat template must leave alone what the conversation sets itself, and "
                f"{', '.join(sorted(taken))} came. Leave it out."
            )
        now = datetime.now()
        given = len(content) if isinstance(content, str) else sum(len(item.get("text", "")) for item in content)
        values: dict[str, Any] = {
            **self._tokens,
            **options,
            "messages": [{"role": "user", "content": content}],
            "tools": None,
            "documents": None,
            "add_generation_prompt": generation,
            "strftime_now": now.strftime,
        }
        written: list[str] = []
        size = 0
        try:
            for piece in self._template.generate(values):
                size += len(piece)
                if size > 2 * given + _OUTPUT:
                    raise IntegrityError(
                        f"The chat template of {self.place} must write at most {_OUTPUT} characters of its own, and it "
                        "writes more. Fetch the model's folder again."
                    )
                written.append(piece)
        except IntegrityError:
            raise
        except _Refused as error:
            raise UsageError(
                f"The chat template of {self.place} must take one turn with these parts and options, and it refuses: "
                f"{_short(error)}. Change the question or the options."
            ) from error
        except Exception as error:  # a template can make Python raise nearly anything
            raise IntegrityError(
                f"The chat template of {self.place} must render one turn, and it fails with {type(error).__name__}: "
                f"{_short(error)}. Fetch the model's folder again, or change the options."
            ) from error
        return "".join(written)


class _Refused(jinja2.TemplateError):
    """raise_exception was called."""


class _Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Multiplication is watched: it is the short way to fill the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        numbers = [abs(value) for value in (left, right) if isinstance(value, int)]
        sized = [len(value) for value in (left, right) if isinstance(value, str | bytes | list | tuple)]
        large = operator == "**" and max(numbers, default=0) > _REPEATS
        if large or (sized and numbers and sized[0] * numbers[0] > _REPEATS):
            raise jinja2.exceptions.SecurityError(f"{operator!r} would make too large a value")
        return super().call_binop(context, operator, left, right)


class _Namespace(jinja2.utils.Namespace):
    """Without names that begin with an underscore: those reach what is behind a value."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, *given = args
        values = dict(*given, **kwargs)
        for name in values:
            _check_name(name)
        jinja2.utils.Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if str(name).startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace must not have the name {name!r}")


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks an assistant's text for training; here it is only its body."""

    tags = frozenset({"generation"})  # type: ignore[assignment]

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _environment() -> jinja2.Environment:
    sandbox = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, "jinja2.ext.loopcontrols"])
    sandbox.filters["tojson"] = _tojson
    sandbox.globals["raise_exception"] = _raise
    sandbox.globals["range"] = _range
    sandbox.globals["namespace"] = _Namespace
    sandbox.globals["dict"] = _dict
    return sandbox


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """jinja2's own escapes HTML, which no model was trained on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: object) -> None:
    raise _Refused(str(message))


def _range(*bounds: int) -> range:
    values = range(*bounds)
    if len(values) > _REPEATS:
        raise jinja2.exceptions.SecurityError(
            f"a range must have at most {_REPEATS} values, and {len(values)} were asked"
        )
    return values


def _dict(*args: Any, **values: Any) -> dict[Any, Any]:
    """A function, because the type itself has more to it than making one."""
    return dict(*args, **values)


def _find(folder: Path, config: dict[str, Any]) -> tuple[Path, str]:
    alone, wrapped, within = (
        folder / name for name in ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
    )
    if alone.exists():
        try:
            return alone, read_bytes(alone, _TEMPLATE_BYTES).decode()
        except UnicodeDecodeError as error:
            raise IntegrityError(f"{alone} must be UTF-8, and it is not. Fetch the model's folder again.") from error
    place, value = wrapped, None
    if wrapped.exists():
        value = read_object(wrapped, CONFIG_BYTES).get("chat_template")
    if value is None:
        place, value = within, config.get("chat_template")
    if isinstance(value, list):  # several, with names
        named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
        value = named.get("default")
    if not isinstance(value, str):
        raise IntegrityError(
            f"{folder} must have a chat template (chat_template.jinja, chat_template.json, or in tokenizer_config.json), "
            "and none of them has one. Fetch those files of the checkpoint: a base model without a template cannot be "
            "asked."
        )
    if len(value) > _TEMPLATE_BYTES:
        raise IntegrityError(
            f"The chat template of {place} must have at most {_TEMPLATE_BYTES} characters, and it has {len(value)}. "
            "Fetch the model's folder again."
        )
    return place, value


def _spelling(token: object) -> str | None:
    spelled = token.get("content") if isinstance(token, dict) else token
    return spelled if isinstance(spelled, str) else None


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= 300 else text[:299] + "…"
