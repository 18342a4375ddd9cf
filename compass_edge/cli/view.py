"""The view of a run: from a snapshot to lines of text. Nothing here reads a clock or writes to a terminal."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from compass_edge.loop.events import (
    CompletionProposed,
    Ended,
    EpisodeStarted,
    Event,
    Gap,
    Oriented,
    ReplyInvalid,
    Reviewed,
    Role,
    Stalled,
    StepBegun,
    StreamEnded,
    Verified,
)
from compass_edge.loop.memo import Speculation
from compass_edge.loop.plan import Step
from compass_edge.loop.progress import Phase, Progress
from compass_edge.loop.state import State

LETTERS: Mapping[Role, str] = {"orienter": "O", "prm": "P", "verifier": "V"}
_WIDEST = 100  # columns: longer lines are hard to read
_STEP_LINES = 4  # that the step in flight takes
_MEANING = {
    "done": "every step verified, the plan reviewed",
    "incomplete": "the video ended before the last step was verified",
    "stalled": "a step was rejected too often",
    "ungrounded": "the objects of the instruction were never there",
    "unplanned": "there was no valid plan",
    "stopped": "by you, or by the host",
    None: "not ended: the run was cut off and can be resumed",
}


@dataclass(frozen=True, slots=True)
class Glyphs:
    done: str
    flight: str
    open: str
    bad: str
    solid: str
    hatched: str
    empty: str
    busy: str
    idle: str
    tau: str
    cut: str


UNICODE = Glyphs("✓", "▶", "·", "✗", "█", "▒", "─", "●", "○", "τ", "…")
ASCII = Glyphs("x", ">", ".", "!", "#", "/", "-", "*", "o", "tau", "~")
_BOLD, _DIM, _GREEN, _YELLOW, _RED, _CYAN = "1", "2", "32", "33", "31", "36"
_PHASES = {Phase.DONE: _GREEN, Phase.TRACKING: _CYAN, Phase.VERIFYING: _YELLOW, Phase.ORIENTING: _CYAN}
Part: TypeAlias = tuple[str, str]  # text and its colour


@dataclass(frozen=True, slots=True)
class Verdict:
    """What V, or the lack of a valid reply of it, made of a candidate."""

    step: int
    accepted: bool
    seen: str
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    title: str
    state: State
    progress: Progress
    now_ns: int
    verdicts: tuple[Verdict, ...] = ()
    lanes: Mapping[Role, bool] | None = None  # busy?
    speculation: Speculation | None = None
    live: bool = True  # the frames age; those of a recording are as old as they will ever be


def clean(text: str) -> str:
    """Text from a scene or a model must not be able to steer the terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def columns(text: str) -> int:
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    return 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def fit(text: str, width: int, cut: str) -> str:
    if columns(text) <= width:
        return text
    kept, used = "", columns(cut)
    for letter in text:
        used += _columns(letter)
        if used > width:
            break
        kept += letter
    return kept + cut if width >= columns(cut) else ""


@dataclass(frozen=True, slots=True)
class _Pen:
    width: int
    glyphs: Glyphs
    color: bool

    def line(self, *parts: Part) -> str:
        drawn, left = "", self.width
        for text, style in parts:
            fitting = fit(clean(text), left, self.glyphs.cut)
            left -= columns(fitting)
            drawn += f"\x1b[{style}m{fitting}\x1b[0m" if self.color and style and fitting else fitting
        return drawn if self.color else drawn.rstrip()


def draw(
    shot: Snapshot, width: int = 80, height: int | None = None, glyphs: Glyphs = UNICODE, color: bool = False
) -> list[str]:
    """No line is wider than `width`; with a `height` steps far from the one in flight are left out to fit."""
    pen = _Pen(min(width, _WIDEST), glyphs, color)
    clock = f"{shot.now_ns / 1e9:8.1f} s"
    title = fit(clean(shot.title), max(pen.width - len(clock), 0), glyphs.cut)
    head = [pen.line((title + " " * (pen.width - columns(title) - len(clock)), _DIM), (clock, _DIM))]
    wrapped = textwrap.wrap(clean(shot.state.instruction), max(pen.width, 20), max_lines=2, placeholder=glyphs.cut)
    head += [pen.line((text, _BOLD)) for text in wrapped] + [""]
    tail = ["", *_progress_lines(pen, shot), *_lane_lines(pen, shot)]
    verdicts = _verdicts(pen, shot)
    if height is None:
        return [*head, *_plan_lines(pen, shot.state, None), *tail, *verdicts]
    room = height - len(head) - len(tail) - len(verdicts)
    while verdicts and room < _STEP_LINES:
        verdicts, room = ([], room + len(verdicts)) if len(verdicts) <= 3 else (["", *verdicts[3:]], room + 2)
    return [*head, *_plan_lines(pen, shot.state, max(room, 1)), *tail, *verdicts][:height]


def _plan_lines(pen: _Pen, state: State, room: int | None) -> list[str]:
    if state.plan is None:
        said = "the objects of the instruction are not there" if state.grounded is False else "no plan yet"
        return [pen.line((f"{pen.glyphs.open} {said}", _DIM))]
    rows = [_step_lines(pen, state, k, step) for k, step in enumerate(state.plan.steps, 1)]
    first, last = 0, len(rows)
    here = min(state.plan.done, len(rows) - 1)
    while room is not None and last - first > 1 and sum(map(len, rows[first:last])) > room:
        first, last = (first + 1, last) if here - first > last - 1 - here else (first, last - 1)
    lines = [line for row in rows[first:last] for line in row]
    return lines if room is None else lines[:room]


def _step_lines(pen: _Pen, state: State, k: int, step: Step) -> list[str]:
    glyphs, active = pen.glyphs, state.active
    number = f" {k:2d}  "
    if step.satisfied:
        return [pen.line((glyphs.done, _GREEN), (number + step.outcome, ""))]
    if active is None or active.step_id != step.id:
        return [pen.line((glyphs.open + number + step.outcome, "" if step == state.the_plan.next_open else _DIM))]
    tried = f"{active.verifications} of {state.settings.max_verifications} verifications used"
    tau = [pen.line((" " * 6, ""), (f"{glyphs.tau} {active.subtask.tau}", _DIM))] if active.subtask.tau else []
    return [
        pen.line((glyphs.flight, _CYAN), (number + step.outcome, _BOLD)),
        pen.line((" " * 6 + active.subtask.sentence, "")),
        *tau,
        pen.line((" " * 6, ""), (f"{active.subtask.completion}, since frame {active.began.seq}, {tried}", _DIM)),
    ]


def bar(progress: Progress, width: int, glyphs: Glyphs) -> tuple[str, str, str]:
    """Verified, estimated beyond it, and the rest."""
    solid = round(width * min(progress.verified, progress.value) / 100)
    hatched = round(width * progress.value / 100) - solid
    return glyphs.solid * solid, glyphs.hatched * hatched, glyphs.empty * (width - solid - hatched)


def _progress_lines(pen: _Pen, shot: Snapshot) -> list[str]:
    now = shot.progress
    solid, hatched, rest = bar(now, max(pen.width - 7, 1), pen.glyphs)
    age = f"  frame {now.frame}"
    if not shot.live:
        age += f", at {now.captured_ns / 1e9:.1f} s of the video"
    elif now.outcome is None:
        age += f", {now.age_s(shot.now_ns):.1f} s old"
    flag = [("  provisional", _YELLOW)] if now.provisional else []
    facts = f"verified {now.verified:.1f}, step {now.step} of {now.steps}, plan revision {now.revision}"
    return [
        pen.line((solid, _GREEN), (hatched, _YELLOW), (rest, _DIM), (f"{now.value:7.1f}", _BOLD)),
        pen.line((f"{now.phase.value:<10}", _PHASES.get(now.phase, _RED)), (age, ""), *flag),
        pen.line((facts, "")),
    ]


def _lane_lines(pen: _Pen, shot: Snapshot) -> list[str]:
    parts: list[Part] = []
    for role, busy in (shot.lanes or {}).items():
        dot, style = (pen.glyphs.busy, _GREEN) if busy else (pen.glyphs.idle, _DIM)
        parts += [(f"{LETTERS[role]} ", ""), (f"{dot} {'busy' if busy else 'idle'}   ", style)]
    lines = ["", pen.line(*parts)] if parts else []
    if shot.speculation is not None:
        lines.append(pen.line((speculation_text(shot.speculation), _DIM)))
    return lines


def speculation_text(found: Speculation) -> str:
    return f"{found.started} asked early, {found.hits} used, {found.wasted} wasted, {found.saved_ns / 1e9:.1f} s of waiting saved"


def _verdicts(pen: _Pen, shot: Snapshot) -> list[str]:
    lines = [""] if shot.verdicts else []
    for one in shot.verdicts:
        mark, style = (pen.glyphs.done, _GREEN) if one.accepted else (pen.glyphs.bad, _RED)
        lines.append(pen.line(("V ", ""), (mark, style), (f" {one.step:2d}  {one.seen}", "")))
        lines.append(pen.line((" " * 8 + one.reason, _DIM)))
    return lines


def line_of(event: Event, state: State) -> tuple[str, str] | None:
    """A word and a text, for those who read a log; None for what is not worth a line."""
    plan = f"plan revision {state.plan.revision}, {state.plan.size} steps" if state.plan is not None else ""
    match event:
        case EpisodeStarted():
            return "begun", event.instruction
        case Oriented():
            return ("oriented", plan) if event.plan else ("looked", "the objects of the instruction are not there")
        case StepBegun():
            return f"step {event.k}", event.subtask.sentence + " (the plan's own words)" * event.from_plan
        case CompletionProposed():
            return "candidate", f"frame {event.frame.seq}, {event.reason}, score {event.score:.2f}"
        case Verified():
            return ("accepted", event.candidate) if event.accepted else ("rejected", f"{event.verdict}: {event.change}")
        case Reviewed():
            return "reviewed", plan
        case ReplyInvalid():
            return "trouble", f"{event.role}, {event.asked}, {event.trouble}: {event.detail}"
        case Gap():
            return "gap", f"{event.missed or 'some'} frames missing before frame {event.frame.seq}: {event.reason}"
        case StreamEnded():
            return "video over", f"last frame {event.frame.seq}"
        case Stalled():
            return "stalled", f"after {event.verifications} verifications; P goes on, V is not asked again"
        case Ended():
            return "ended", event.outcome
    return None


def meaning(outcome: str | None) -> str:
    return _MEANING.get(outcome, "")


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    rows = [
        ("outcome", f"{summary['outcome'] or 'none'}: {meaning(summary['outcome'])}"),
        ("progress", f"{summary['value']:.1f}, verified {summary['verified']:.1f}"),
        ("steps", f"{summary['satisfied']} of {summary['steps']}, plan revision {summary['revision']}"),
        ("verdicts", f"{summary['accepted']} accepted, {summary['rejected']} rejected"),
        ("events", f"{summary['events']}, {summary['invalid']} invalid replies, {summary['gaps']} gaps"),
    ]
    if summary["speculation"] is not None:
        found = Speculation(**summary["speculation"])
        rows.append(("early calls", speculation_text(found) + (f", {found.shown} for display" if found.shown else "")))
    if summary["lanes"] is not None:
        busy = ", ".join(f"{LETTERS[role]} {seconds:.1f} s" for role, seconds in summary["lanes"].items())
        rows.append(("models", f"{busy} busy in {summary['seconds']:.1f} s"))
    if summary["latencies"]:
        rows.append(("latencies", summary["latencies"]))
    if summary["unexpected"] is not None:
        rows.append(("expected", "; ".join(summary["unexpected"]) or "as the scenario says"))
    return [f"{name:<12}{clean(text)}" for name, text in (*rows, *_footage_rows(summary))]


def _footage_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Of a run on footage: the plan, and what a second of computing was good for."""
    rows = []
    for k, step in enumerate(summary.get("plan", ()), 1):
        when = "open" if step["at_s"] is None else f"{step['at_s']:.1f} s"
        rows.append(("plan" if k == 1 else "", f"{k:2d}  {when:>8}  {step['outcome']}"))
    if summary.get("speed") is not None:
        spent = f"{summary['footage_s']:.1f} s of video in {summary['computing_s']:.1f} s of computing"
        rows.append(("speed", f"{spent}: {summary['speed']:.2f} s a second"))
    if summary.get("age_s"):
        ages = summary["age_s"]
        told = f"{ages['median']:.2f} s (median), {ages['p95']:.2f} s (95th percentile)"
        rows.append(("age", f"{told}: of the frame behind what was published, read every 50 ms"))
    if summary.get("error") is not None:
        rows.append(("error", f"{summary['error']:.1f} of 100, mean absolute, against the annotation"))
    if summary.get("without") is not None:
        rows.append(("without", f"{summary['without']:.1f}: the same P without context, the whole video as one task"))
    rows += [(name, summary[name]) for name in ("failure", "note", "report") if summary.get(name)]
    return rows
