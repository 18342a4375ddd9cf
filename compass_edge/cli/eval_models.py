"""Which models `compass-edge eval --models` runs: presets by name, each a factory that a worker process can make again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeAlias

from compass_edge.data.episode import Episode
from compass_edge.errors import UsageError
from compass_edge.eval.knowledge import Knowledge
from compass_edge.eval.oracle import OracleOrienter, OraclePrm, OracleVerifier
from compass_edge.eval.wording import Wording
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings
from compass_edge.models import ProgressModel

Options: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Preset:
    about: str
    options: Options  # with their defaults
    make: Callable[
        [Sequence[Episode], Options, int | None], Models
    ]  # with so many threads; None: as many as there are cores
    notice: str = ""  # what a reader of its numbers must know
    settings: Callable[[float], Settings] | None = None  # what the loop runs with at a film's rate, unless it is told
    wording: Wording = "annotation"  # of the steps that a model is asked about alone
    told: bool = False  # of the episodes, before it is asked


@dataclass(frozen=True, slots=True)
class Suite:
    """What an evaluation needs of its models: the loop's three, and the progress model alone."""

    text: str  # as it was asked for
    notice: str
    models: Callable[[], Models]  # picklable
    prm: Callable[[], ProgressModel]
    wording: Wording


def _oracles(episodes: Sequence[Episode], options: Options, _threads: int | None) -> Models:
    knowledge = Knowledge(episodes)
    seed = int(options["seed"])
    return Models(
        OracleOrienter(knowledge, plan_error=options["plan_error"], seed=seed),
        OraclePrm(knowledge, bias=options["bias"], early=options["early"], seed=seed),
        OracleVerifier(knowledge, beta=options["beta"], gamma=options["gamma"], seed=seed),
    )


def _tiny(_episodes: Sequence[Episode], _options: Options, threads: int | None) -> Models:
    return _tiny_models(threads)


@lru_cache(maxsize=2)
def _tiny_models(threads: int | None) -> Models:
    """One in a process, whatever asks for it."""
    from compass_edge.presets import tiny

    return tiny.models(threads)


def _tiny_settings(fps: float) -> Settings:
    from compass_edge.presets import tiny

    return tiny.settings(fps)


PRESETS: dict[str, Preset] = {
    "oracle": Preset(
        "models that know the annotation, damaged by what is asked for",
        {"beta": 0.0, "gamma": 0.0, "bias": 0.0, "early": 0.0, "plan_error": 0.0, "seed": 0.0},
        _oracles,
        "The models of this run are oracles: they know the annotation. The numbers test the loop and the evaluation around "
        "them, and say nothing about a trained model.",
        told=True,
    ),
    "tiny": Preset("compass-tiny, the model that comes with the package", {}, _tiny, settings=_tiny_settings, wording="orienter"),
}  # fmt: skip
_RATES = ("beta", "gamma", "early", "plan_error")


def choose_models(text: str) -> tuple[Preset, Options]:
    name, _, rest = text.partition(":")
    if name not in PRESETS:
        raise UsageError(f"There are no models '{name}'. There are: {', '.join(PRESETS)}.")
    preset = PRESETS[name]
    options = dict(preset.options)
    for part in filter(None, rest.split(",")):
        key, _, number = part.partition("=")
        if key not in options:
            raise UsageError(f"The models '{name}' have no option '{key}'. There are: {', '.join(options) or 'none'}.")
        options[key] = _number(key, number)
    return preset, options


def _number(key: str, text: str) -> float:
    low, high = (0.0, 1.0) if key in _RATES else (-1.0, 1.0) if key == "bias" else (0.0, 2.0**32)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high or (key == "seed" and value != int(value)):
        kind = "a whole number of at least 0" if key == "seed" else f"a number from {low:g} to {high:g}"
        raise UsageError(f"'{key}' must be {kind}, and '{text}' came.")
    return value


def suite(text: str, episodes: Sequence[Episode], threads: int | None = None) -> Suite:
    preset, options = choose_models(text)
    told = episodes if preset.told else ()
    bare = [replace(episode, tracks={}) for episode in told]  # sent to every process: nothing that no model needs
    make = partial(preset.make, bare, options, threads)
    return Suite(text, preset.notice, make, partial(_prm_of, make), preset.wording)


def _prm_of(make: Callable[[], Models]) -> ProgressModel:
    return make().prm
