"""TensorRT for reward models: which chips, which library, and a body that runs its engines behind RoboMeter."""
