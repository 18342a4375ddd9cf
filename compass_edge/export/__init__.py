"""checkpoint -> ONNX, without torch; never needed on the robot."""
