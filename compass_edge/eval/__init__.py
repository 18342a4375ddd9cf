"""The evaluation: how good a progress curve is, what the context is worth, and every table of the paper."""
