"""Sampling: how many frames lie between two that are looked at.

A tick is every tenth frame of a 30 Hz camera, a third of a second; and three a second is what the paper samples RoboMeter with.
Films have frame rates of their own: in one of 10 Hz a button is pressed in 17 frames, and every tenth would miss it.
"""

from __future__ import annotations

from dataclasses import replace

from compass_edge.loop.settings import Settings

A_SECOND = 3.0


def settings_at(fps: float, settings: Settings | None = None, a_second: float = A_SECOND) -> Settings:
    """These settings, with so many ticks a second."""
    return replace(settings or Settings(), every=max(round(fps / a_second), 1))
