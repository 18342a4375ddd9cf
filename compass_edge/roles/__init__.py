"""Orienter and Verifier: what they are asked, the schema of their answer, and what it means."""
