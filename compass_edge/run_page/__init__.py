"""The page about one run of the loop: its video, its curve, its plan, every verdict with what V saw, and who was busy when."""
