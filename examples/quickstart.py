"""Every 10th frame of a video as the patches a Qwen-VL vision tower reads: python examples/quickstart.py episode.mp4"""

import sys

from compass_edge import open_source
from compass_edge.frames.patches import preprocessor_for

preprocess = preprocessor_for("qwen3-vl", dtype="f16")
with open_source(sys.argv[1]) as source:
    for frame in source:
        if frame.seq % 10 == 0:
            patches = preprocess.run(frame)
            print(
                f"{frame.time:7.2f} s  {frame.width}x{frame.height} {frame.format} -> {patches.shape} {patches.dtype}"
            )
