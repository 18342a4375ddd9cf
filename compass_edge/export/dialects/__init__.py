"""The two ways in which a model is written down: ONNX Runtime's fused operators, or plain ONNX."""
