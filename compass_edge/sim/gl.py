"""The graphics that MuJoCo draws with: EGL or OSMesa, whichever works here. No screen is needed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from functools import lru_cache

from compass_edge.errors import EnvironmentFault

BACKENDS = ("egl", "osmesa")
_TRY = "import mujoco, sys; mujoco.GLContext(16, 16).make_current(); sys.exit(0)"
_CHOICE = "mujoco.rendering.classic.gl_context"
_CURE = (
    "Install Mesa: `apt install libegl1 libegl-mesa0 libgl1-mesa-dri` for EGL, or `apt install libosmesa6` for OSMesa. "
    "`compass-edge sim check --no-pictures` needs neither."
)


@lru_cache(maxsize=1)
def choose_gl() -> str:
    """Sets MUJOCO_GL for this process and its children, before MuJoCo draws for the first time.

    Each candidate is tried in a process of its own: PyOpenGL cannot change its mind once it is loaded.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower()
    for backend in (asked,) if asked else BACKENDS:
        if _works(backend):
            os.environ["MUJOCO_GL"] = backend
            if _CHOICE in sys.modules:  # MuJoCo is loaded already, for its physics: let it choose again
                importlib.reload(sys.modules[_CHOICE])
            return backend
    tried = f"MUJOCO_GL={asked} does" if asked else "neither EGL nor OSMesa does"
    raise EnvironmentFault(f"The simulator draws with EGL or OSMesa, and {tried} not work here. {_CURE}")


def _works(backend: str) -> bool:
    environment = {**os.environ, "MUJOCO_GL": backend}
    environment.pop("PYOPENGL_PLATFORM", None)
    done = subprocess.run([sys.executable, "-c", _TRY], env=environment, capture_output=True, check=False)
    return done.returncode == 0
