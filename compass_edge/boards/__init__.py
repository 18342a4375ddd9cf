"""Boards: what a robot's computer is, what fits into it, and what it still needs."""
