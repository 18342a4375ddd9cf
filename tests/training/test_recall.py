"""Every step of a recall is answered by its list, and by nothing else."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

for needed in ("torch", "transformers", "mujoco"):
    pytest.importorskip(needed)

from training.recall import recall


def test_each_step_starts_where_the_list_says() -> None:
    dice = np.random.default_rng(0)
    for _ in range(100):
        sample = recall(dice)
        reply = json.loads(sample.reply)
        where = dict(entry["name"].split(" at ") for entry in reply["objects"] if " at " in entry["name"])
        for step in reply["plan"]:
            found = re.match(r"Move the (.+) from the (.+) (?:onto|into) the (.+)", step["outcome"].split(" (")[0])
            assert found is not None
            capped = re.fullmatch(r"tube with the (\w+) cap", found[1])
            thing = f"{capped[1]} tube" if capped else found[1]
            assert where[thing] == found[2]
            where[thing] = found[3]


def test_the_list_is_given_and_the_plan_is_learned() -> None:
    sample = recall(np.random.default_rng(1))
    assert sample.reply[sample.given :].startswith('"grounded"')
    assert not sample.frames


def test_the_instruction_names_everything_in_its_order() -> None:
    dice = np.random.default_rng(2)
    for _ in range(50):
        sample = recall(dice)
        assert sample.question is not None
        asked = "".join(part for part in sample.question.parts if isinstance(part, str))
        named = [step["outcome"].removeprefix("Move ").split(" from ")[0] for step in json.loads(sample.reply)["plan"]]
        assert f"Move {', '.join(named)} onto " in asked
