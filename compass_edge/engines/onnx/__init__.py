"""Models on ONNX Runtime: any CPU, and CUDA where its wheel has it."""
