"""Scripted episodes: a small world that is told in ticks, and models that know it. For the loop's logic, never for a claim
about a real model."""
