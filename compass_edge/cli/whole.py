"""Whole numbers on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """For `type=`: the number, or a sentence about what came instead."""

    def read(text: str) -> int:
        if not (text.isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text}")
        return int(text)

    return read
