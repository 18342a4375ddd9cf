"""The C++ core, or the sentence that says how to get it."""

from types import ModuleType

from compass_edge.errors import EnvironmentFault

try:
    from compass_edge import _native as _module
except ImportError as error:
    _module = None
    _why = str(error)
else:
    _why = ""


def native() -> ModuleType:
    """`compass_edge._native`, raising EnvironmentFault where it was not built."""
    if _module is None:
        raise EnvironmentFault(
            f"compass-edge's C++ core is not installed ({_why}). In the source folder: `pip install .` (it needs a C++20 "
            "compiler and Python's headers; on Debian and Ubuntu `apt install g++ python3-dev`)."
        )
    return _module
