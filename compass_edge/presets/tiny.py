"""The preset `tiny`: compass-tiny, the model that comes with the package. O and V are one model; all share a vision tower.

models(threads=2)     # compass_edge.loop.call.Models
settings(fps=10.0)    # compass_edge.loop.settings.Settings
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.call import Models
from compass_edge.loop.events import Role
from compass_edge.loop.settings import Settings
from compass_edge.presets.preset import Preset

NAME = "tiny"
MODEL = "compass-tiny"
FOLDER = Path(__file__).parents[1] / NAME
_FRAMES, _FRAME_TOKENS, _WORDS = 128, 42, 256  # of P's longest clip, and its text around them
_PRM_CONTEXT = _FRAMES * _FRAME_TOKENS + _WORDS
_VLM_CONTEXT = 4096
_FEATURES = 128 << 20  # bytes
_TICKS = 5.0  # a second
_CURE = (
    "Install compass-edge again; or, in a clone, export it again: `python -m training.publish --again training/compass-tiny --package "
    "compass_edge/tiny`."
)


def models(threads: int | None = None) -> Models:
    """Every byte is checked against its manifest, and a known question against its known answer."""
    from compass_edge.engines.onnx.feature_store import FeatureStore  # onnxruntime: not needed to list presets
    from compass_edge.engines.onnx.session import Options
    from compass_edge.engines.onnx.vlm import OnnxVlm
    from compass_edge.prms.robometer import RoboMeter

    features = FeatureStore(_FEATURES)
    with _whole():
        vlm = OnnxVlm(_part("vlm"), Options(threads=threads, context=_VLM_CONTEXT, batch=2), features=features)
        prm_options = Options(threads=threads, context=_PRM_CONTEXT, batch=2, prefixes=2)
        prm = RoboMeter(_part("prm"), prm_options, mode="whole", features=features)
    return Models(vlm, prm, vlm)


def names() -> dict[Role, str]:
    """What `models().names()` gives, from the manifests alone."""
    from compass_edge.engines.manifest import read_manifest

    with _whole():
        vlm, prm = (read_manifest(_part(part)) for part in ("vlm", "prm"))
    talker = f"{vlm.name}@{vlm.digest[:16]}"
    return {"orienter": talker, "prm": f"{prm.name}@{prm.digest[:16]} (whole)", "verifier": talker}


def settings(fps: float) -> Settings:
    """Those that it was calibrated with: five ticks a second, whatever the film's rate. A button is down for two of ten frames."""
    path = FOLDER / "settings.json"
    if not path.is_file():
        raise _missing(path)
    with _whole():
        return settings_at(fps, Settings().overlaid(str(path)), _TICKS)


def _part(name: str) -> Path:
    folder = FOLDER / name
    if not (folder / "manifest.json").is_file():
        raise _missing(folder / "manifest.json")
    return folder


def _missing(path: Path) -> EnvironmentFault:
    return EnvironmentFault(f"The model {MODEL} should come with the package, and '{path}' is not there. {_CURE}")


@contextmanager
def _whole() -> Iterator[None]:
    try:
        yield
    except EnvironmentFault:
        raise
    except CompassError as error:
        raise IntegrityError(f"The model {MODEL}, which comes with the package, is damaged: {error} {_CURE}") from error


PRESET = Preset(
    NAME,
    f"{MODEL}, which comes with the package and runs on any CPU",
    models,
    names,
    settings,
    knows=f"{MODEL} has learned the table-top scenes of ContextProgress-Sim and nothing else: of other videos it cannot be "
    "expected to know the objects. Larger models are exported with `compass-edge models export`.",
)
