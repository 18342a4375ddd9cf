"""Frames: from a file, a stream, a camera or the host program into a ring, and from there to patches."""
