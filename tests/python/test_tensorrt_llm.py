"""The engine on TensorRT-LLM against a stand-in of its documented API. The real one has never been run."""

from __future__ import annotations

import platform
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from openai_samples import REPLY, SCHEMA, question

from compass_edge.engines.tensorrt_llm import TensorRtLlm
from compass_edge.errors import CompassError, EnvironmentFault
from compass_edge.models import Image, Question
from compass_edge.roles.reply import InvalidReply, read

pytestmark = pytest.mark.tensorrt


class Request:
    def __init__(self, texts: list[str]) -> None:
        self._texts, self.aborted = texts, False

    def __iter__(self) -> Iterator[Any]:
        for text in self._texts:
            yield types.SimpleNamespace(outputs=[types.SimpleNamespace(text=text)])

    def abort(self) -> None:
        self.aborted = True


class FakeLlm:
    texts: ClassVar[list[str]] = [REPLY[:4], REPLY[:9], REPLY]

    def __init__(self, **options: Any) -> None:
        self.options, self.asked, self.requests = options, list[Any](), list[Request]()
        self.tokenizer = self
        FakeLlm.last = self

    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> str:
        assert options == {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        return "".join(part.get("text", "<|image_pad|>") for part in messages[0]["content"])

    def generate_async(self, prompt: Any, sampling: Any, *, streaming: bool) -> Request:
        assert streaming
        self.asked.append((prompt, sampling))
        self.requests.append(Request(self.texts))
        return self.requests[-1]

    def shutdown(self) -> None:
        self.options = {}

    last: FakeLlm


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> type[FakeLlm]:
    api: Any = types.ModuleType("tensorrt_llm")
    api.LLM, api.SamplingParams, api.__version__ = FakeLlm, types.SimpleNamespace, "1.2.1"
    guidance: Any = types.ModuleType("tensorrt_llm.llmapi")
    guidance.GuidedDecodingParams = types.SimpleNamespace
    monkeypatch.setitem(sys.modules, "tensorrt_llm", api)
    monkeypatch.setitem(sys.modules, "tensorrt_llm.llmapi", guidance)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return FakeLlm


def test_a_question(llm: type[FakeLlm]) -> None:
    model = TensorRtLlm("models/Qwen3-VL-8B", context=4096)
    assert llm.last.options == {
        "model": "models/Qwen3-VL-8B", "guided_decoding_backend": "xgrammar", "max_batch_size": 1, "max_seq_len": 4096,
    }  # fmt: skip
    assert model.name == "Qwen3-VL-8B (TensorRT-LLM 1.2.1, jpeg to 1024)"
    pieces: list[str] = []
    picture = Image("d", np.full((32, 48, 3), 9, np.uint8))
    (text,) = model.ask(
        [Question(("a ", picture, " b"), SCHEMA, 77)], lambda _, piece: pieces.append(piece), lambda: False
    )
    assert read(text, SCHEMA)["count"] == 3
    assert "".join(pieces) == text
    prompt, sampling = llm.last.asked[0]
    assert prompt["prompt"] == "a <|image_pad|> b"  # where it was said
    assert [one.size for one in prompt["multi_modal_data"]["image"]] == [(48, 32)]
    assert (sampling.temperature, sampling.top_k, sampling.max_tokens) == (0.0, 1, 77)
    assert '"count"' in sampling.guided_decoding.json
    model.close()
    assert llm.last.options == {}


def test_a_text_without_pictures_and_a_schema_that_is_ignored(
    llm: type[FakeLlm], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeLlm, "texts", ["Sure! Here is", "Sure! Here is the JSON"])
    model = TensorRtLlm("m")
    (text,) = model.ask([question()], lambda *_: None, lambda: False)
    assert list(llm.last.asked[0][0]) == ["prompt"]
    with pytest.raises(InvalidReply):
        read(text, SCHEMA)


def test_cancelled_between_two_tokens(llm: type[FakeLlm]) -> None:
    stop = threading.Event()
    texts = TensorRtLlm("m").ask([question(), question()], lambda *_: stop.set(), stop.is_set)
    assert texts == [REPLY[:4], ""]
    assert [request.aborted for request in llm.last.requests] == [True]


def test_faults_are_sentences(llm: type[FakeLlm], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("out of memory")

    model = TensorRtLlm("m")
    monkeypatch.setattr(llm, "generate_async", broken)
    with pytest.raises(CompassError, match=r"was to answer a question to 'm', and failed: RuntimeError: out of memory"):
        model.ask([question()], lambda *_: None, lambda: False)
    monkeypatch.setattr(llm, "__init__", broken)
    with pytest.raises(CompassError, match=r"was to load 'm', and could not"):
        TensorRtLlm("m")
    monkeypatch.setitem(sys.modules, "tensorrt_llm", None)  # type: ignore[arg-type]
    with pytest.raises(EnvironmentFault, match=r"must be installed, from NVIDIA's own index"):
        TensorRtLlm("m")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(EnvironmentFault, match=r"for x86 cards, and this CPU is aarch64.*Edge-LLM"):
        TensorRtLlm("m")
