"""Training of compass-tiny: from seeds of the simulator to the model that the package carries. Never needed on the robot."""
