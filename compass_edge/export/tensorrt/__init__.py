"""Graphs of the standard dialect to TensorRT engines."""
