"""ContextProgress-Sim: a Panda arm at a table, tasks whose progress a frame does not show, and the exact truth about them."""
