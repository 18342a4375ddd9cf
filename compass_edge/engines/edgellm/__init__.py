"""Vision-language models on TensorRT Edge-LLM: a supervised server of its own, or its Python API in this process."""
