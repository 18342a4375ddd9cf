"""A preset of oracles that know the bundled episodes: the chain around the models is real, the models are not.

python oracle_preset.py run bundled --episode R1/0     # the command line with it as `tiny`, slowed down by COMPASS_EDGE_SLOW
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compass_edge.data.bundled import BUNDLED
from compass_edge.data.episode import Episode
from compass_edge.data.folder import FolderDataset
from compass_edge.eval.oracle import oracles
from compass_edge.eval.sampling import settings_at
from compass_edge.loop.call import Models
from compass_edge.presets.preset import Preset

KNOWS = "An oracle knows what it was told."


def bundled(id: str = "R1/0") -> Episode:
    return next(episode for episode in FolderDataset(BUNDLED).episodes() if episode.id == id)


@dataclass(frozen=True)
class Slow:
    model: Any
    seconds: float

    @property
    def name(self) -> str:
        return str(self.model.name)

    @property
    def max_batch(self) -> int:
        return 1

    def score(self, clips: Sequence[Any]) -> Any:
        time.sleep(self.seconds)
        return self.model.score(clips)

    def ask(self, *question: Any) -> Any:
        time.sleep(self.seconds)
        return self.model.ask(*question)


def models(threads: int | None = None, episodes: Sequence[Episode] = ()) -> Models:  # noqa: ARG001
    made = oracles(episodes or list(FolderDataset(BUNDLED).episodes()))
    seconds = float(os.environ.get("COMPASS_EDGE_SLOW", "0"))
    return Models(Slow(made.orienter, seconds), Slow(made.prm, seconds), Slow(made.verifier, seconds))


ORACLES = Preset("oracles", "oracles", models, lambda: models().names(), settings_at, KNOWS)

if __name__ == "__main__":
    from compass_edge.cli.main import main
    from compass_edge.presets.registry import PRESETS

    PRESETS["tiny"] = ORACLES
    sys.exit(main(sys.argv[1:]))
