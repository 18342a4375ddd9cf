"""compass-edge tells a robot how far its task has come, live, on the robot's own computer."""

from importlib.metadata import PackageNotFoundError, version

from compass_edge.frames.source import Source, open_source

try:
    __version__ = version("compass-edge")
except PackageNotFoundError:  # a source tree on the path that was never installed
    __version__ = "0+unknown"

__all__ = ["Source", "__version__", "open_source"]
