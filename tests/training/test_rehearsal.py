"""A rehearsal: the loop on whole episodes, told line by line, and never on test seeds."""

from __future__ import annotations

import re
import sys

import pytest

from compass_edge.data.dataset import find_episode, open_dataset
from compass_edge.errors import UsageError
from compass_edge.presets import tiny
from training import rehearsal


def test_it_tells_what_happened(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On an episode that comes with the package: nothing has to be drawn."""
    episode = find_episode(open_dataset("bundled"), "R1/0")
    monkeypatch.setattr(rehearsal, "_episodes", lambda *_: [episode])
    monkeypatch.setattr(tiny, "FOLDER", tiny.FOLDER)  # put back after the command has set it
    monkeypatch.setattr(sys, "argv", ["rehearsal", "--all"])
    assert rehearsal.main() == 0
    told = capsys.readouterr().out
    begun = re.findall(r"^ +\d+ step (\d+): Press", told, re.MULTILINE)
    assert begun == [str(at + 1) for at in range(len(episode.truth))]
    assert told.count(": done\n") == len(episode.truth)
    assert f"{[step.end for step in episode.truth]} of {episode.frames}" in told
    assert re.search(r"^mean \d+\.\d\d, median \d+\.\d\d, n = 1$", told, re.MULTILINE)


@pytest.mark.parametrize("seed", ["0", "100", "998-1000"])
def test_test_seeds_are_refused(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    monkeypatch.setattr(sys, "argv", ["rehearsal", "--seeds", seed])
    with pytest.raises(UsageError, match="tuning"):
        rehearsal.main()
