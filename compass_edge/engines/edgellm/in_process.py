"""TensorRT Edge-LLM's Python API in this process: no server and no copy over a socket, and no supervision either.

A fault in its C++ ends this process with it, which is why a server is the usual way. Written to the API of 0.11 as its wheel has it
and tried against a stand-in of it: it has never been run on a GPU by us.
"""

from __future__ import annotations

import importlib
import json
from itertools import groupby
from typing import Any

from compass_edge.boards.machine import Machine
from compass_edge.boards.payload import table
from compass_edge.engines.edgellm.command_line import SPECULATIVE_TOKENS
from compass_edge.engines.edgellm.launch import Launch
from compass_edge.engines.edgellm.readiness import require_payload
from compass_edge.engines.one_at_a_time import OneAtATime
from compass_edge.engines.picture_url import picture_url
from compass_edge.errors import CompassError, EnvironmentFault
from compass_edge.models import Cancelled, Image, OnText, Question

_NAMES = ("LLM", "SamplingParams", "ContextCacheConfig")
_MAX_SIDE = 1024


def edgellm_api() -> Any:
    """Its package is literally named `experimental`: another one of that name would be imported just as well."""
    cure = f"`pip install '{table().package}[server]=={table().version}'`"
    try:
        api = importlib.import_module("experimental.server")
    except ImportError as error:
        raise EnvironmentFault(
            f"TensorRT Edge-LLM's Python API must be installed beside compass-edge, and cannot be imported: {error}. {cure}"
        ) from error
    if lacking := [name for name in _NAMES if not hasattr(api, name)]:
        raise EnvironmentFault(
            f"The package `experimental` must be TensorRT Edge-LLM's, and the one that was imported ({api.__file__}) has no "
            f"{' and no '.join(lacking)}. Remove it, and then {cure}."
        )
    return api


class InProcessEdgeLlm(OneAtATime):
    """One question at a time; any thread may ask."""

    def __init__(self, launch: Launch, machine: Machine | None = None) -> None:
        super().__init__()
        require_payload(machine)
        self._api = edgellm_api()
        self._launch = launch
        limits = launch.limits
        reuse = {
            "enabled": launch.reuse,
            **({"recurrent_snapshot_pool_bytes": limits.snapshots} if launch.reuse else {}),
        }
        speculation = {"method": "mtp", "num_speculative_tokens": SPECULATIVE_TOKENS} if launch.mtp else None
        try:
            self._model = self._api.LLM(
                str(launch.checkpoint),
                cache_dir=launch.cache,
                max_input_len=limits.prompt,
                max_batch_size=1,
                max_kv_cache_capacity=limits.context,
                max_image_tokens=limits.image_tokens,
                speculative_config=speculation,
                context_cache_config=self._api.ContextCacheConfig(**reuse),
            )
        except Exception as error:  # its C++ raises whatever it likes
            raise CompassError(
                f"TensorRT Edge-LLM was to load '{launch.checkpoint}', and could not: {type(error).__name__}: {error}"
            ) from error

    @property
    def name(self) -> str:
        return f"{self._launch.model} of {self._launch.checkpoint.name} (Edge-LLM {table().version}, in process, jpeg to {_MAX_SIDE})"

    def close(self) -> None:
        self._model.close()

    def _answer(self, index: int, question: Question, on_text: OnText, cancelled: Cancelled) -> str:
        sampling = self._api.SamplingParams(
            temperature=0.0,
            top_p=1.0,
            top_k=1,
            seed=0,
            max_tokens=question.max_tokens,
            enable_thinking=False,
            guided_decoding=("json_schema", json.dumps(question.schema, sort_keys=True)),
        )
        text = ""
        try:
            stream = self._model.generate_stream([{"role": "user", "content": _content(question)}], sampling)
            try:
                for delta in stream:
                    if delta.text:
                        text += delta.text
                        on_text(index, delta.text)
                    if cancelled():
                        break
            finally:
                stream.close()
        except Exception as error:  # its C++ raises whatever it likes
            raise CompassError(
                f"TensorRT Edge-LLM was to answer a question to {self._launch.model}, and failed: {type(error).__name__}: {error}"
            ) from error
        return text


def _content(question: Question) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for kind, group in groupby(question.parts, type):
        if kind is str:
            content.append({"type": "text", "text": "".join(str(part) for part in group)})
        else:
            urls = [picture_url(part, max_side=_MAX_SIDE) for part in group if isinstance(part, Image)]
            content += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return content
