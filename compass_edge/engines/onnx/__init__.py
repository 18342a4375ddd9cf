"""Models on ONNX Runtime: any CPU, and CUDA where its wheel has it."""

from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm

__all__ = ["OnnxVlm", "Options"]
