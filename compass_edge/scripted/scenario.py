"""Scenarios: scripted worlds that a person writes as JSON, with what the run must come to. `scenarios/` has the built-in ones.

A timeline is told in segments, {"does": name, "for": ticks} and {"idle": ticks}; its last tick shows how it ended. Whatever
cannot be meant so gets a sentence with the file and the place in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compass_edge.errors import UsageError
from compass_edge.loop.lanes import ROLES
from compass_edge.loop.settings import Settings
from compass_edge.scripted.expect import Expect
from compass_edge.scripted.node import Node
from compass_edge.scripted.world import Fault, Happening, StepScript, World

FOLDER = Path(__file__).with_name("scenarios")
# Seconds a call, all inferred from token rates that others published (O: Qwen3.5-27B, 250 tokens; P: 8 frames; V: Qwen3.5-9B,
# 3 frames and 150 tokens; Thor with multi-token prediction). None measured by us.
BOARDS: Mapping[str, Mapping[str, float]] = {
    "thor": {"orienter": 7.5, "prm": 0.14, "verifier": 1.8},
    "orin": {"orienter": 30.0, "prm": 1.05, "verifier": 6.8},
}
_KEYS = "instruction timeline steps plan expect"
_OPTIONAL = "about objects cut_at edits describes omitted faults missing grounded_from latency settings"
_STEP = ("id happening outcome criterion sentence", "tau completion")
_COMPLETIONS = ("lasting", "brief", "observation")
_ASKED = ("first", "next", "review", "score", "verify")


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    about: str
    world: World
    expect: Expect
    latency: Mapping[str, float] = field(default_factory=lambda: BOARDS["thor"])
    settings: Settings = field(default_factory=Settings)
    digest: str = ""  # of the file: a journal goes on only with the scenario that it began with

    @property
    def source(self) -> str:
        return f"scripted:{self.name}@{self.digest}"


def built_in() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> Scenario:
    """A built-in scenario by its name, or any other by the path of its file."""
    path = FOLDER / f"{name}.json" if name in built_in() else Path(name)
    if path.suffix != ".json":
        raise UsageError(
            f"There is no scenario '{name}'. There are: {', '.join(built_in())}. Your own is named by its path, and ends "
            "in .json."
        )
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"The scenario '{name}' cannot be read: {reason}. Correct the path.") from error
    return parse(path.stem, str(path), data)


def parse(name: str, file: str, data: bytes) -> Scenario:
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=lambda pairs: _once(file, pairs))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: expected a scenario as JSON, and it cannot be read: {error}.") from None
    top = Node(file, "", value).fields(_KEYS, _OPTIONAL)
    world = _world(name, top)
    return Scenario(
        name,
        top["about"].text() if "about" in top else "",
        world,
        Expect.read(top["expect"]),
        _latency(top["latency"]) if "latency" in top else BOARDS["thor"],
        _settings(top["settings"]) if "settings" in top else Settings(every=world.every),
        hashlib.blake2b(data, digest_size=4).hexdigest(),
    )


def _once(file: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [key for key, _ in pairs]
    for key in names:
        if names.count(key) > 1:
            raise UsageError(f"{file}: the key '{key}' is there twice in one object. Leave one.")
    return dict(pairs)


def _world(name: str, top: dict[str, Node]) -> World:
    happenings, ticks = _timeline(top)
    steps = _steps(top["steps"], {one.name for one in happenings})
    known = {step.id: step for step in steps}
    grounded_from: int | None = 0
    if "grounded_from" in top and (grounded_from := top["grounded_from"].value) is not None:
        grounded_from = top["grounded_from"].whole(0, ticks - 1)
    omitted = top["omitted"].listed() if "omitted" in top else []
    edits = top["edits"].by_step(known) if "edits" in top else {}
    describes = top["describes"].by_step(known) if "describes" in top else {}
    return World(
        name,
        top["instruction"].text(),
        ticks,
        happenings,
        steps,
        _plan(top["plan"], known, needed=grounded_from is not None),
        {key: node.whole(0, 99) for key, node in top["objects"].entries().items()} if "objects" in top else {},
        grounded_from,
        {step: [_edit(edit, known) for edit in node.listed()] for step, node in edits.items()},
        {step: node.step(known) for step, node in describes.items()},
        tuple(node.step(known) for node in omitted),
        tuple(_fault(node, ticks) for node in top["faults"].listed()) if "faults" in top else (),
        tuple(node.whole(1, ticks - 1) for node in top["missing"].listed()) if "missing" in top else (),
    )


def _timeline(top: dict[str, Node]) -> tuple[tuple[Happening, ...], int]:
    happenings: list[Happening] = []
    now = 0
    for segment in top["timeline"].listed():
        if "idle" in segment.entries():
            now += segment.fields("idle")["idle"].whole(1)
            continue
        does = segment.fields("does for")
        happenings.append(Happening(does["does"].text(), now, now := now + does["for"].whole(1)))
    if not now:
        raise top["timeline"].wrong("a list of at least one segment")
    if "cut_at" in top:
        return tuple(happenings), top["cut_at"].whole(1, now)
    return tuple(happenings), now + 1


def _steps(node: Node, happenings: set[str]) -> tuple[StepScript, ...]:
    steps: list[StepScript] = []
    for entry in node.listed():
        step = entry.fields(*_STEP)
        happening = step["happening"]
        if happening.value is not None and happening.text() not in happenings:
            raise happening.wrong(f"something that the timeline does ({_names(happenings)}) or null for never")
        if (number := step["id"].whole(1)) in (other.id for other in steps):
            raise step["id"].wrong("an id that no other step has")
        steps.append(
            StepScript(
                number,
                happening.value or "",
                step["outcome"].text(),
                step["criterion"].text(),
                step["sentence"].text(),
                step["tau"].text() if "tau" in step else "",
                step["completion"].choice(*_COMPLETIONS) if "completion" in step else "lasting",
            )
        )
    return tuple(steps)


def _names(names: set[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "nothing"


def _plan(node: Node, known: Mapping[int, StepScript], needed: bool) -> tuple[int, ...]:
    plan = tuple(entry.step(known) for entry in node.listed())
    if plan != tuple(range(1, len(plan) + 1)):
        raise node.wrong("the ids 1, 2, 3 and so on in order, because that is how the loop counts the steps of a plan")
    if needed and not plan:
        raise node.wrong("a list of at least one step, because the objects are there")
    return plan


def _edit(node: Node, known: Mapping[int, StepScript]) -> dict[str, Any]:
    """{"add": 4, "before": 3} says of step 4 what the script says of it; O must not know its id."""
    given = node.entries()
    op = next((op for op in ("add", "correct", "move", "remove") if op in given), None)
    if op is None:
        raise node.wrong('an edit: {"add": id}, {"correct": id}, {"move": id} or {"remove": id}')
    fields = node.fields(op, "before" if op in ("add", "move") else "outcome criterion" if op == "correct" else "")
    step = known[fields[op].step(known)]
    return {
        "op": op,
        "id": None if op == "add" else step.id,
        "before": fields["before"].step(known) if "before" in fields else None,
        "outcome": fields["outcome"].text() if "outcome" in fields else step.outcome,
        "criterion": fields["criterion"].text() if "criterion" in fields else step.criterion,
        "times": 1,
    }


def _fault(node: Node, ticks: int) -> Fault:
    fields = node.fields("role from to reply", "asked")
    role, reply = fields["role"].choice(*ROLES), fields["reply"]
    first, last = fields["from"].whole(0, ticks - 1), fields["to"].whole(0, ticks - 1)
    if last < first:
        raise fields["to"].wrong(f"a tick that is not before {first}, where the fault begins")
    text = reply.value if isinstance(reply.value, str) else json.dumps(reply.value)
    if role == "prm" and not (text in ("late", "raise") or type(reply.value) in (int, float)):
        raise reply.wrong('a number, "late" or "raise", because P answers with a number')
    return Fault(role, first, last, text, fields["asked"].choice(*_ASKED) if "asked" in fields else "")


def _latency(node: Node) -> Mapping[str, float]:
    if isinstance(node.value, str):
        return BOARDS[node.choice(*BOARDS)]
    return {role: seconds.number(0) for role, seconds in node.fields(" ".join(ROLES)).items()}


def _settings(node: Node) -> Settings:
    if "every" in node.entries():
        raise node.entries()["every"].wrong("left out, because a scripted world has its own")
    try:
        return Settings.from_dict(node.value)
    except (UsageError, TypeError) as error:
        raise UsageError(f"{node.file}: {node.path}: {error}") from None
