"""An episode through the loop: python examples/loop.py

The models here are scripted. Yours take their place by implementing compass_edge.models: ProgressModel.score and
VisionLanguageModel.ask. Ticks come from a recording or a camera with compass_edge.loop.intake.open_ticks(source).
"""

from compass_edge.loop.curve import curve
from compass_edge.loop.episode import Episode
from compass_edge.loop.overlapped import Overlapped
from compass_edge.loop.publisher import Publisher
from compass_edge.loop.thread_lanes import ThreadLanes
from compass_edge.scripted.models import scripted_models
from compass_edge.scripted.scenario import load
from compass_edge.scripted.ticks import ScriptedTicks

world = load("sequence").world
models = scripted_models(world)  # an Orienter, a progress reward model, a Verifier
publisher = Publisher()  # publisher.read(now_ns, max_age_s) never waits, from any thread
events = []

episode = Episode.begin(
    world.instruction,
    ScriptedTicks(world),
    models.names(),
    subscribers=(publisher.committed, lambda event, state: events.append(event)),
)
with ThreadLanes(models) as lanes:
    Overlapped(episode, lanes, models, publisher.provisional).run()

for point in curve(events):
    print(f"frame {point.frame:4}  {point.rebased:5.1f}  {'#' * round(point.rebased / 2)}")
print(publisher.latest)
