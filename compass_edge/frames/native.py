"""The C++ core, or the sentence that says how to get it."""

from types import ModuleType

from compass_edge.errors import EnvironmentFault


def native() -> ModuleType:
    """`compass_edge._native`, raising EnvironmentFault where it was not built."""
    try:
        from compass_edge import _native
    except ImportError as error:
        raise EnvironmentFault(
            f"compass-edge's C++ core is not installed ({error}). In the source folder: `pip install .` (it needs a C++20 "
            "compiler and Python's headers; on Debian and Ubuntu `apt install g++ python3-dev`)."
        ) from error
    return _native
