"""The whole loop on real engines with random weights: nonsense, and the same nonsense from either executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
from exported_samples import Samples, noise

from compass_edge.engines.onnx.feature_store import FeatureStore
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.loop.call import Models
from compass_edge.loop.candidate import CandidateRule
from compass_edge.loop.episode import Episode
from compass_edge.loop.events import Ended, Event, FrameScored, Oriented, ReplyInvalid, Verified
from compass_edge.loop.lanes import Limits
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.sequential import run_sequential
from compass_edge.loop.settings import Settings
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.models import Cancelled, Clip, Image, OnText, Question
from compass_edge.prms.robometer import RoboMeter
from compass_edge.scripted.models import scripted_models
from compass_edge.scripted.scenario import load
from compass_edge.scripted.ticks import ScriptedTicks

OPTIONS = Options(context=8192, batch=2, prefixes=3)
WORLD = replace(load("sequence").world, ticks=7)
# Every score is high, so that V is asked; replies are long enough to be cut off now and then.
SETTINGS = Settings(
    max_steps=3,
    max_verifications=2,
    look_again=3,
    max_looks=1,
    candidate=CandidateRule(high=0.01, hold=1, retry_after=1),
)


@dataclass
class Drawing:
    """An engine, with a picture drawn for each scripted frame."""

    engine: Any

    @property
    def name(self) -> str:
        return str(self.engine.name)

    @property
    def max_batch(self) -> int:
        return int(self.engine.max_batch)

    def ask(self, questions: Sequence[Question], on_text: OnText, cancelled: Cancelled) -> Any:
        shown = [replace(question, parts=tuple(map(_drawn, question.parts))) for question in questions]
        return self.engine.ask(shown, on_text, cancelled)

    def score(self, clips: Sequence[Clip]) -> Any:
        return self.engine.score([Clip(clip.sentence, tuple(map(_drawn, clip.frames))) for clip in clips])


def _drawn(part: Any) -> Any:
    return Image(part.digest, noise(part.pixels)) if isinstance(part, Image) else part


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def engines(samples: Samples, kind: str, orienter: str) -> Models:
    """One language model for both roles, and a RoboMeter that shares its features."""
    store = FeatureStore(1 << 20)
    talker = Drawing(OnnxVlm(samples.model(kind), OPTIONS, features=store))
    meter = Drawing(RoboMeter(samples.model("robometer"), OPTIONS, slots=4, features=store))
    return Models(scripted_models(WORLD).orienter if orienter == "scripted" else talker, meter, talker)


def told(models: Models, executor: str) -> list[Event]:
    events: list[Event] = []
    episode = Episode.begin(
        WORLD.instruction, ScriptedTicks(WORLD), models.names(), settings=SETTINGS,
        subscribers=(lambda event, state: events.append(event),),
    )  # fmt: skip
    deadlines = dict.fromkeys(("orienter", "prm", "verifier"), 300.0)
    with ThreadLanes(models, Limits(deadline_s=deadlines)) as lanes:  # type: ignore[arg-type]
        if executor == "sequential":
            run_sequential(episode, lanes)
        else:
            Overlapped(episode, lanes, models).run()
    return events


def rounded(event: Event) -> tuple[Any, ...]:
    """What was read of a prompt before decides in which pieces the rest is read, and so the last digits of a score."""
    values = [getattr(event, field.name) for field in fields(event)]
    return type(event), *(round(value, 4) if isinstance(value, float) else value for value in values)


@pytest.mark.parametrize("orienter", ["scripted", "engine"])
@pytest.mark.parametrize("kind", ["qwen3-vl", "qwen3.5"])
def test_both_executors_tell_the_same(samples: Samples, kind: str, orienter: str) -> None:
    """With a scripted O there is a plan to score and verify; with a random one the loop must survive what it says."""
    sequential = told(engines(samples, kind, orienter), "sequential")
    overlapped = told(engines(samples, kind, orienter), "overlapped")
    assert [rounded(event) for event in sequential] == [rounded(event) for event in overlapped]
    assert sum(isinstance(event, Ended) for event in sequential) == 1
    troubles = {event.trouble for event in sequential if isinstance(event, ReplyInvalid)}
    assert troubles.isdisjoint({"late", "missing"})  # every reply came
    if orienter == "scripted":
        assert sum(isinstance(event, FrameScored) for event in sequential) >= 4
        assert any(isinstance(event, Verified | ReplyInvalid) for event in sequential)
    else:
        assert any(isinstance(event, Oriented | ReplyInvalid) for event in sequential)
