"""The report of a run: drawn in place for a person at a terminal, a line an event for a log, JSON lines for a program."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, TextIO

from compass_edge.cli.view import ASCII, UNICODE, Snapshot, Verdict, clean, draw, line_of, summary_lines
from compass_edge.loop.events import Event, ReplyInvalid, Role, Verified, to_dict
from compass_edge.loop.memo import Speculation
from compass_edge.loop.progress import Progress, progress_of
from compass_edge.loop.publisher import Publisher
from compass_edge.loop.state import State
from compass_edge.scripted.expect import Tally

_VERDICTS = 3  # kept for the view
_PICTURES_A_SECOND = 20


class Report:
    """Told of every event, in order. This one prints a line for each that is worth one."""

    def __init__(self, title: str, out: TextIO) -> None:
        self.title, self.tally = title, Tally()
        self.live = True  # its frames have an age; those of a recording have a place in it
        self.publisher = Publisher()
        self.verdicts: deque[Verdict] = deque(maxlen=_VERDICTS)
        self._out = out

    def __enter__(self) -> Report:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    @property
    def state(self) -> State:
        if self.tally.state is None:
            raise TypeError("Nothing has happened yet.")
        return self.tally.state

    def recall(self, event: Event, state: State) -> None:
        """What happened before this run went on with it."""
        before = self.tally.state.active if self.tally.state is not None else None
        rejected = self.tally.rejected
        self.tally(event, state)
        place = self.tally.state.plan.position if self.tally.state and self.tally.state.plan else 0
        if isinstance(event, Verified):
            verdict = Verdict(
                place - event.accepted, event.accepted, event.candidate, f"{event.verdict}: {event.change}"
            )
            self.verdicts.append(verdict)
        elif before is not None and isinstance(event, ReplyInvalid) and self.tally.rejected > rejected:
            self.verdicts.append(Verdict(place, False, "no valid reply of V: a rejection", event.detail))
        self.publisher.committed(event, state)

    def event(self, event: Event, state: State, now_ns: int) -> None:
        self.recall(event, state)
        told = line_of(event, state)
        if told is not None:
            self._print(f"{now_ns / 1e9:8.1f} s  {progress_of(state).value:5.1f}  {told[0]:<11} {told[1]}")

    def provisional(self, progress: Progress, now_ns: int) -> None:  # noqa: ARG002
        self.publisher.provisional(progress)

    def look(self, now_ns: int, lanes: Mapping[Role, bool] | None, speculation: Speculation | None) -> None:
        """Time has passed."""

    def end(self, now_ns: int, summary: Mapping[str, Any]) -> None:  # noqa: ARG002
        self._print("")
        for line in summary_lines(summary):
            self._print(line)

    def summary(
        self,
        seconds: float,
        *,
        stopped: bool = False,
        speculation: Speculation | None = None,
        lanes: Mapping[Role, float] | None = None,
        latencies: str = "",
        unexpected: list[str] | None = None,
        footage: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        plan, result = self.state.plan, self.tally.result()
        return {
            **result,
            "outcome": "stopped" if stopped else result["outcome"],
            "satisfied": plan.done if plan is not None else 0,
            "events": self.tally.events,
            "seconds": seconds,
            "speculation": asdict(speculation) if speculation is not None else None,
            "lanes": lanes,
            "latencies": latencies,
            "unexpected": unexpected,
            **(footage or {}),
        }

    def _print(self, text: str) -> None:
        encoding = self._out.encoding or "utf-8"
        print(clean(text).encode(encoding, "replace").decode(encoding), file=self._out, flush=True)


class JsonLines(Report):
    """One object an event, one a progress that differs from the last, and the summary at the end."""

    def event(self, event: Event, state: State, now_ns: int) -> None:
        before = self.publisher.latest
        self.recall(event, state)
        self._write(now_ns, to_dict(event))
        self._write_progress(now_ns, before)

    def provisional(self, progress: Progress, now_ns: int) -> None:
        before = self.publisher.latest
        super().provisional(progress, now_ns)
        self._write_progress(now_ns, before)

    def end(self, now_ns: int, summary: Mapping[str, Any]) -> None:
        self._write(now_ns, {"summary": summary})

    def _write_progress(self, now_ns: int, before: Progress | None) -> None:
        latest = self.publisher.latest
        if latest is not None and latest != before:
            self._write(now_ns, {"progress": latest.to_dict()})

    def _write(self, now_ns: int, values: Mapping[str, Any]) -> None:
        print(json.dumps({"t": round(now_ns / 1e9, 6), **values}), file=self._out, flush=True)


class Screen(Report):
    """Redrawn in place. Whatever happens, the terminal gets its cursor and its line wrapping back."""

    def __init__(self, title: str, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(title, out)
        self._clock, self._drawn_at, self._height = clock, 0.0, 0
        self._size = os.terminal_size((0, 0))
        self._glyphs = UNICODE if _can_write(out, "".join(asdict(UNICODE).values())) else ASCII
        self._color = "NO_COLOR" not in os.environ
        self._last: Snapshot | None = None

    def __enter__(self) -> Report:
        self._out.write("\x1b[?25l\x1b[?7l")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._out.write("\x1b[0m\x1b[?7h\x1b[?25h")
            self._out.flush()

    def event(self, event: Event, state: State, now_ns: int) -> None:
        self.recall(event, state)
        last = self._last
        self.look(now_ns, last.lanes if last else None, last.speculation if last else None)

    def look(
        self,
        now_ns: int,
        lanes: Mapping[Role, bool] | None,
        speculation: Speculation | None,
        *,
        at_once: bool = False,
    ) -> None:
        progress = self.publisher.latest or progress_of(self.state)
        self._last = Snapshot(
            self.title, self.state, progress, now_ns, tuple(self.verdicts), lanes, speculation, self.live
        )
        if at_once or self._clock() - self._drawn_at >= 1 / _PICTURES_A_SECOND:
            self._draw(self._last)

    def end(self, now_ns: int, summary: Mapping[str, Any]) -> None:
        self.look(now_ns, None, None, at_once=True)
        self._out.write("\x1b[?7h")
        super().end(now_ns, summary)

    def _terminal_size(self) -> os.terminal_size:
        """The real one: COLUMNS, which shutil believes in, may be of another terminal."""
        try:
            size = os.get_terminal_size(self._out.fileno())
        except (OSError, ValueError):
            size = os.terminal_size((0, 0))
        return size if size.columns and size.lines else os.terminal_size((80, 24))

    def _draw(self, shot: Snapshot) -> None:
        size = self._terminal_size()
        start = f"\x1b[{self._height}F" if self._height else "\r"
        if self._height and size != self._size:  # what was drawn has been wrapped anew: nobody knows where it is
            start = "\x1b[2J\x1b[H"
        lines = draw(shot, max(size.columns - 1, 1), max(size.lines - 1, 1), self._glyphs, self._color)
        encoding = self._out.encoding or "utf-8"
        text = "".join(f"{line}\x1b[K\n" for line in lines).encode(encoding, "replace").decode(encoding)
        self._out.write(f"{start}{text}\x1b[J")
        self._out.flush()
        self._drawn_at, self._size, self._height = self._clock(), size, len(lines)


def _can_write(out: TextIO, text: str) -> bool:
    try:
        text.encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def report_on(title: str, out: TextIO, as_json: bool) -> Report:
    if as_json:
        return JsonLines(title, out)
    if out.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return Screen(title, out)
    return Report(title, out)
