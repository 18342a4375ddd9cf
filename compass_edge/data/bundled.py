"""The episodes that come with the package: one of each form, for a first look without a simulator or a data set."""

from __future__ import annotations

from pathlib import Path

NAME = "bundled"
BUNDLED = Path(__file__).parent / NAME
EPISODES = (("S1", 0), ("Q4", 0), ("R1", 0))  # test seeds, as `compass-edge sim render` makes them
