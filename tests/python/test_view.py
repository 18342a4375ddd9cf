"""The terminal view of a run: drawn in place, given back, fitting any size."""

import contextlib
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from fcntl import ioctl
from typing import Any

import pytest
from test_scenarios import reference

from compass_edge.cli.view import ASCII, Glyphs, Snapshot, Verdict, columns, draw
from compass_edge.loop.events import Event
from compass_edge.loop.memo import Speculation
from compass_edge.loop.progress import progress_of
from compass_edge.loop.state import fold


def in_a_terminal(size: tuple[int, int], *arguments: str, interrupt_at: bytes = b"") -> tuple[str, int]:
    """What a terminal of that size is sent."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    command = [sys.executable, "-m", "compass_edge.cli.main", *arguments]
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    sent = b""
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # Linux says so when the other side is closed
            while piece := os.read(ours, 65536):
                sent += piece
                if interrupt_at and interrupt_at in sent:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = b""
    os.close(ours)
    return sent.decode(), process.returncode


@pytest.mark.parametrize("size", [(100, 40), (24, 8)])
def test_the_terminal_is_drawn_in_place_and_given_back(size: tuple[int, int]) -> None:
    sent, code = in_a_terminal(size, "run", "--scripted", "sequence", "--speed", "40")
    assert code == 0
    pictures, _, rest = sent.rpartition("\x1b[J")
    assert rest.index("outcome     done") < rest.index("\x1b[?7h\x1b[?25h")  # line wrapping and the cursor are back
    drawn = pictures.split("\x1b[J")
    assert len(drawn) > 5
    assert "DONE" in drawn[-1] or size[1] < 10
    for picture in drawn[1:]:
        lines = picture.rpartition("F")[2].replace("\x1b[K", "").split("\r\n")
        assert len(lines) <= size[1]
        assert all(columns(line) < size[0] for line in lines)


def test_ctrl_c_gives_the_terminal_back() -> None:
    sent, code = in_a_terminal((80, 30), "run", "--scripted", "stall", "--speed", "4", interrupt_at=b"TRACKING")
    assert code == 1
    assert "outcome     stopped" in sent
    assert "\x1b[?25h" in sent.rpartition("\x1b[?25l")[2]


def picture(
    events: list[Event], width: int, height: int | None = None, glyphs: Glyphs | None = None, **more: Any
) -> str:
    state = fold(events)
    shot = Snapshot("sequence, overlapped", state, progress_of(state), 12_300_000_000, **more)
    lines = draw(shot, width, height, glyphs) if glyphs else draw(shot, width, height)
    assert all(columns(line) <= width for line in lines)
    return "\n".join(lines) + "\n"


def test_the_view_before_there_is_a_plan() -> None:
    assert picture(reference("sequence")[:1], 50) == (
        "sequence, overlapped                        12.3 s\n"
        "Put the red, then the blue, then the clear tube\n"
        "into the rack.\n"
        "\n"
        "· no plan yet\n"
        "\n"
        "───────────────────────────────────────────    0.0\n"
        "ORIENTING   frame 0, 12.3 s old\n"
        "verified 0.0, step 0 of 0, plan revision 0\n"
    )


def test_the_view_of_a_step_in_flight() -> None:
    told = (Verdict(1, True, "the rack holds a red tube", "done: it moved"), Verdict(2, False, "a hand", "uncertain"))
    lanes = {"orienter": False, "prm": True, "verifier": False}
    seen = picture(
        reference("sequence")[:29], 60, verdicts=told, lanes=lanes, speculation=Speculation(5, 3, 1, 0, 25 * 10**8)
    )
    assert seen == (
        "sequence, overlapped                                  12.3 s\n"
        "Put the red, then the blue, then the clear tube into the\n"
        "rack.\n"
        "\n"
        "✓  1  the red tube is in the rack\n"
        "▶  2  the blue tube is in the rack\n"
        "      Lift the blue tube from the table and set it into the…\n"
        "      τ the rack goes from one tube to two\n"
        "      lasting, since frame 150, 0 of 8 verifications used\n"
        "·  3  the clear tube is in the rack\n"
        "\n"
        "██████████████████▒▒▒▒▒▒▒────────────────────────────   47.4\n"
        "TRACKING    frame 220, 5.0 s old\n"
        "verified 33.3, step 2 of 3, plan revision 1\n"
        "\n"
        "O ○ idle   P ● busy   V ○ idle\n"
        "5 asked early, 3 used, 1 wasted, 2.5 s of waiting saved\n"
        "\n"
        "V ✓  1  the rack holds a red tube\n"
        "        done: it moved\n"
        "V ✗  2  a hand\n"
        "        uncertain\n"
    )


def test_the_view_in_a_small_terminal_without_unicode() -> None:
    assert picture(reference("sequence")[:29], 34, 12, ASCII, verdicts=(Verdict(1, True, "x", "y"),)) == (
        "sequence, overlapped        12.3 s\n"
        "Put the red, then the blue, then\n"
        "the clear tube into the rack.\n"
        "\n"
        ">  2  the blue tube is in the rack\n"
        "      Lift the blue tube from the~\n"
        "      tau the rack goes from one ~\n"
        "      lasting, since frame 150, 0~\n"
        "\n"
        "#########////--------------   47.4\n"
        "TRACKING    frame 220, 5.0 s old\n"
        "verified 33.3, step 2 of 3, plan ~\n"
    )


def test_the_view_takes_wide_letters_and_any_size() -> None:
    events = reference("state-recall")
    state = replace(fold(events[:40]), instruction="把红色方块放到绿色垫子上然后放回原处" * 3 + "\x1b[2J\n")
    for width in (1, 2, 5, 9, 20, 33, 200):
        for height in (1, 3, 10, 30):
            told = (Verdict(1, True, "放回原处" * 20, "\x1b]0;title\x07"),) * 3
            shot = Snapshot("title " * 9, state, progress_of(state), 0, told, {"prm": True}, Speculation())
            lines = draw(shot, width, height)
            assert len(lines) <= height
            assert all(columns(line) <= width for line in lines)
            assert not any("\x1b" in line for line in lines)
