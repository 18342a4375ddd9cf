"""A vision-language model on TensorRT-LLM's LLM API, for the x86 cards that it supports. It does not target Jetson: use Edge-LLM there.

Never executed: TensorRT-LLM cannot be installed where this was written. It is written to the documented API of 1.2 (LLM, SamplingParams,
GuidedDecodingParams, generate_async with streaming, prompts with multi_modal_data) and tried against a stand-in of that API alone.
`trtllm-serve` is asked over compass_edge.engines.openai instead. Replies are checked by whoever asked, in both cases: it is known
to accept a schema and to ignore it.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import platform
from pathlib import Path
from typing import Any

from compass_edge.engines.one_at_a_time import OneAtATime
from compass_edge.engines.picture_url import picture_url
from compass_edge.errors import CompassError, EnvironmentFault
from compass_edge.models import Cancelled, Image, OnText, Question

_MAX_SIDE = 1024
_BACKEND = "xgrammar"


class TensorRtLlm(OneAtATime):
    """One question at a time; any thread may ask. `context` is the longest sequence, the reply included."""

    def __init__(self, model: Path | str, *, context: int = 8192) -> None:
        super().__init__()
        if platform.machine() != "x86_64":
            raise EnvironmentFault(
                f"TensorRT-LLM is for x86 cards, and this CPU is {platform.machine()}. On a Jetson or a DGX Spark, serve the model "
                "with TensorRT Edge-LLM: compass_edge.engines.edgellm."
            )
        self._api, self._guidance = _imported("tensorrt_llm"), _imported("tensorrt_llm.llmapi")
        self._model = str(model)
        try:
            self._llm = self._api.LLM(
                model=self._model, guided_decoding_backend=_BACKEND, max_batch_size=1, max_seq_len=context
            )
        except Exception as error:  # whatever CUDA, MPI and its C++ raise
            raise CompassError(
                f"TensorRT-LLM was to load '{self._model}', and could not: {type(error).__name__}: {error}"
            ) from error

    @property
    def name(self) -> str:
        return f"{Path(self._model).name} (TensorRT-LLM {getattr(self._api, '__version__', '')}, jpeg to {_MAX_SIDE})"

    def close(self) -> None:
        self._llm.shutdown()

    def _answer(self, index: int, question: Question, on_text: OnText, cancelled: Cancelled) -> str:
        guidance = self._guidance.GuidedDecodingParams(json=json.dumps(question.schema, sort_keys=True))
        sampling = self._api.SamplingParams(
            temperature=0.0, top_k=1, seed=0, max_tokens=question.max_tokens, guided_decoding=guidance
        )
        text = ""
        try:
            request = self._llm.generate_async(self._prompt(question), sampling, streaming=True)
            for output in request:
                whole = output.outputs[0].text
                # A character that is not complete yet may be shown as another; only what is appended is told.
                if whole.startswith(text) and len(whole) > len(text):
                    on_text(index, whole[len(text) :])
                text = whole
                if cancelled():
                    request.abort()
                    break
        except Exception as error:
            raise CompassError(
                f"TensorRT-LLM was to answer a question to '{self._model}', and failed: {type(error).__name__}: {error}"
            ) from error
        return text

    def _prompt(self, question: Question) -> dict[str, Any]:
        """Rendered here, since its own loader of pictures puts all of them before the text."""
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in question.parts
        ]
        prompt = self._llm.tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        pictures = [_picture(part) for part in question.parts if isinstance(part, Image)]
        return {"prompt": prompt, **({"multi_modal_data": {"image": pictures}} if pictures else {})}


def _picture(image: Image) -> Any:
    data = base64.b64decode(picture_url(image, max_side=_MAX_SIDE).partition(",")[2])
    return _imported("PIL.Image").open(io.BytesIO(data)).convert("RGB")


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EnvironmentFault(
            f"TensorRT-LLM must be installed, from NVIDIA's own index, and cannot be imported: {error}. Its container has it; or serve the "
            "model with vLLM and ask it over compass_edge.engines.openai."
        ) from error
