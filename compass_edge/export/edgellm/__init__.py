"""Qwen checkpoints for TensorRT Edge-LLM: quantized on our frames and exported to its ONNX, in an environment of its own."""
