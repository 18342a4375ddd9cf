"""RoboMeter's progress along a video: python examples/score.py episode.mp4 "put the red block into the box" Robometer-4B

The model is a name of the store or a folder, made with `compass-edge models export`.
"""

import sys

from compass_edge import open_source
from compass_edge.models import Image
from compass_edge.prms.robometer import RoboMeter

video, task, model = sys.argv[1:4]
with open_source(video) as source:  # a copy of every 10th frame: the ring takes its own back
    frames = [Image(f"{video} {frame.seq}", frame.rgb()) for frame in source if frame.seq % 10 == 0]
scores = RoboMeter(model).curve(task, frames)
for number, (progress, success) in enumerate(zip(scores.progress, scores.success, strict=True)):
    print(f"frame {10 * number:4}  {progress:.2f}  {'#' * round(50 * progress):50}  success {success:.2f}")
