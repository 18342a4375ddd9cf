"""Presets: models that go together, by name, with the loop's settings for them."""
