"""Courses: of which kinds of samples a training is made, and how often each is shown."""

from __future__ import annotations

# Kind of sample, whether without its pictures, samples a process, and how often: as the course begins, and as it ends.
MIX = (
    ("dense", False, 32, 0.12, 0.06), ("verify", False, 5, 0.28, 0.36), ("verify", True, 12, 0.03, 0.02),
    ("survey", False, 14, 0.10, 0.06), ("look", False, 12, 0.02, 0.02), ("first", False, 6, 0.10, 0.15), ("first", True, 10, 0.18, 0.18),
    ("recall", True, 16, 0.12, 0.05), ("next", False, 8, 0.06, 0.08), ("next", True, 8, 0.02, 0.01), ("review", True, 8, 0.01, 0.02),
)  # fmt: skip
# Words alone, and mostly looking up.
WORDS = (
    ("recall", True, 16, 0.55, 0.45),
    ("first", True, 12, 0.30, 0.35),
    ("next", True, 8, 0.10, 0.15),
    ("verify", True, 12, 0.05, 0.05),
)
# Mostly the Verifier, and of the rest as much as keeps it.
VERIFIER = (
    ("dense", False, 32, 0.10, 0.04), ("verify", False, 5, 0.46, 0.54), ("verify", True, 12, 0.20, 0.10), ("survey", False, 14, 0.10, 0.06),
    ("first", False, 6, 0.10, 0.12), ("first", True, 10, 0.03, 0.03), ("next", False, 8, 0.18, 0.14), ("next", True, 8, 0.06, 0.04),
    ("review", True, 8, 0.01, 0.01),
)  # fmt: skip
# Mostly the Orienter's first look and the Verifier, and of the rest as much as keeps it.
ORIENTER = (
    ("dense", False, 32, 0.06, 0.04), ("first", False, 6, 0.30, 0.28), ("first", True, 10, 0.05, 0.04), ("verify", False, 5, 0.42, 0.48),
    ("survey", False, 14, 0.06, 0.06), ("next", False, 8, 0.04, 0.03), ("next", True, 8, 0.05, 0.05), ("review", True, 8, 0.02, 0.02),
)  # fmt: skip
CLIPS = (("clip", False, 0, 1.0, 1.0),)  # for a decoder of their own
COURSES = {"all": MIX, "words": WORDS, "verifier": VERIFIER, "orienter": ORIENTER, "clips": CLIPS}
