"""Models on a server that speaks the OpenAI protocol: vLLM, SGLang, llama-server, TensorRT-LLM, TensorRT Edge-LLM.

    endpoint = Endpoint("http://127.0.0.1:8080/v1", "Qwen3.5-9B")
    print(probe(endpoint).trouble or "ready")
    model = OpenAiModel(endpoint)  # a VisionLanguageModel, for Orienter or Verifier

Nothing that a server says is trusted: each of those above breaks its promises in its own way. `Endpoint` says what can be set,
`OpenAiModel` what is handed back and what raises, `Counts` what is counted.
"""

from compass_edge.engines.openai.counts import Counts
from compass_edge.engines.openai.endpoint import NO_THINKING, Dialect, Endpoint
from compass_edge.engines.openai.model import OpenAiModel
from compass_edge.engines.openai.probe import Probe, probe

__all__ = ["NO_THINKING", "Counts", "Dialect", "Endpoint", "OpenAiModel", "Probe", "probe"]
