"""A method: whatever makes curves of an episode. The loop, a progress model alone, or the reader's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Generic, Protocol, TypeVar

from compass_edge.data.episode import Episode
from compass_edge.eval.diagnosis import diagnose, without_context
from compass_edge.eval.loop_run import LOOP, Executor, run_loop
from compass_edge.eval.result import Result
from compass_edge.eval.sampling import A_SECOND, settings_at
from compass_edge.eval.trace import Between
from compass_edge.eval.wording import Wording, reworded
from compass_edge.loop.call import Models
from compass_edge.loop.settings import Settings, Tau
from compass_edge.models import ProgressModel

_Made = TypeVar("_Made")


class Method(Protocol):
    """To run in several processes it must be picklable, and its factory with it."""

    @property
    def name(self) -> str:
        """For people who wait."""

    def identity(self) -> Mapping[str, Any]:
        """Everything besides the episode that its results depend on, as JSON. Results are kept under its hash."""

    def run(self, episode: Episode) -> tuple[Result, ...]:
        """One curve, or several that are made together."""


class Lazy(Generic[_Made]):
    """Made when it is first needed, once in each process: a worker gets the factory, never the model."""

    def __init__(self, make: Callable[[], _Made]) -> None:
        self._make = make
        self._made: _Made | None = None

    def __call__(self) -> _Made:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __reduce__(self) -> tuple[type[Lazy[_Made]], tuple[Callable[[], _Made]]]:
        return Lazy, (self._make,)


class LoopMethod:
    """Without settings, ticks are a third of a second apart in every film; `tau` goes before the settings' own.

    `names` spares making the models when all results are known already; they must be those that the models have.
    """

    def __init__(
        self,
        make: Callable[[], Models],
        settings: Settings | None = None,
        executor: Executor = "sequential",
        *,
        name: str = LOOP,
        between: Between = "linear",
        tau: Tau | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self._models, self._settings, self._tau = name, Lazy(make), settings, tau
        self._executor: Executor = executor
        self._between: Between = between
        self._names = names

    def identity(self) -> Mapping[str, Any]:
        """Without the executor, which changes nothing that is measured but the seconds."""
        names = dict(self._names or self._models().names())
        rules = asdict(self._settings or Settings())
        if self._settings is None:
            rules["every"] = f"{A_SECOND} a second"
        if self._tau is not None:
            rules["tau"] = self._tau
        return {
            "method": "loop",
            "name": self.name,
            "models": names,
            "settings": rules,
            "between": self._between,
        }

    def run(self, episode: Episode) -> tuple[Result, ...]:
        rules = self._settings or settings_at(episode.fps)
        rules = rules if self._tau is None else replace(rules, tau=self._tau)
        return (run_loop(episode, self._models(), rules, self._executor, method=self.name, between=self._between),)


class PrmMethod:
    """A progress model alone: without context; and, with `context`, all three curves of the paired diagnosis."""

    def __init__(
        self,
        make: Callable[[], ProgressModel],
        settings: Settings | None = None,
        *,
        context: bool = True,
        model: str | None = None,
        wording: Wording = "annotation",
    ) -> None:
        self._prm, self._settings, self._context, self._model = Lazy(make), settings, context, model
        self._wording: Wording = wording

    @property
    def name(self) -> str:
        return self._model or self._prm().name

    def identity(self) -> Mapping[str, Any]:
        rules = self._settings
        sampling = None if rules is None else {"every": rules.every, "max_frames": rules.max_frames}
        told = {} if self._wording == "annotation" else {"wording": self._wording}
        return {"method": "prm", "model": self.name, "context": self._context, "sampling": sampling, **told}

    def run(self, episode: Episode) -> tuple[Result, ...]:
        if not self._context:
            return (without_context(self._prm(), episode, self._settings),)
        return diagnose(self._prm(), reworded(episode, self._wording), self._settings).results
