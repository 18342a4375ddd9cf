"""Checks, before anything is built, that this machine can build: one sentence and the cure when it cannot."""

# Runs before anything is installed, perhaps on an old Python that is to be told so: plain syntax, no dependencies.
import os
import shutil
import sys
import sysconfig
from pathlib import Path


def problems():
    if sys.version_info < (3, 10):  # noqa: UP036
        yield "compass-edge needs Python 3.10 or later, this is {}.{}. Try `make PYTHON=python3.12 ...`.".format(
            *sys.version_info[:2]
        )
        return
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        yield "Python's venv module is missing. On Debian and Ubuntu: apt install python3-venv."
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        yield "Python's headers are missing. On Debian and Ubuntu: apt install python3-dev."
    compiler = os.environ.get("CXX", "")
    if not any(shutil.which(name) for name in (compiler.split(" ")[0] or "c++", "g++", "clang++")):
        yield "No C++ compiler was found. On Debian and Ubuntu: apt install g++."


found = list(problems())
for sentence in found:
    print(sentence, file=sys.stderr)
sys.exit(3 if found else 0)
