"""Our engine beside transformers, OpenVINO and llama.cpp on random models of about 140 million parameters, and what it saves
between calls, against itself without that.

Contenders take turns in one run, each in a process of its own. With one thread a turn counts by its CPU-seconds, with more by
the clock. Ratios are ours over theirs: above 1 we are faster. Headlines are the worst over families and threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from _engines_process import BOTH, ENTRIES, Process
from _race import machine, versions

THREADS = (1, 2)
PREFILL, DECODE = 256, 32
PREFIXES = 60
RIVALS = {"transformers": "transformers fp32", "openvino": "openvino int8", "llama": "llama.cpp q8_0"}
Speeds = dict[str, dict[str, float]]


def text_speeds(family: str, threads: int, rounds: int) -> Speeds:
    """Tokens a second of each contender."""
    dice = np.random.default_rng(0)
    prompt, reply = (dice.integers(0, 4096, count).tolist() for count in (PREFILL, DECODE))
    entries = [entry for entry in ENTRIES if family in entry.families and not entry.missing()]
    processes = []
    for entry in entries:
        note(f"{family}, {threads} threads: starting {entry.name}")
        processes.append(Process(entry, family, threads))
    clock = "cpu" if threads == 1 else "wall"
    spent: dict[str, list[tuple[float, float]]] = {process.name: [] for process in processes}
    for turn in range(rounds + 1):
        for process in processes:
            note(f"{family}, {threads} threads: round {turn} of {rounds}, {process.name}")
            one = process.ask("prefill", prompt)[clock], process.ask("decode", reply)[clock]
            if turn:
                spent[process.name].append(one)
    speeds = {}
    for process in processes:
        prefill, decode = (statistics.median(column) for column in zip(*spent[process.name], strict=True))
        peak = process.ask("memory")["peak_mb"]
        speeds[process.name] = {"prefill": PREFILL / prefill, "decode": DECODE / decode, "peak_memory_mb": peak}
        process.close()
    return speeds


def calls(threads: int, rounds: int, prefixes: int) -> dict[str, Any]:
    note("calls: forced tokens, a second look by the Verifier, RoboMeter over every prefix of a film")
    script = Path(__file__).parent / "_engines_calls.py"
    command = [sys.executable, str(script), str(threads), str(rounds), str(prefixes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{script.name} failed:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def headlines(speeds: dict[str, dict[str, Speeds]], saved: dict[str, Any]) -> dict[str, Any]:
    """None where a rival is not installed."""
    made: dict[str, Any] = {}
    every = [race for races in speeds.values() for race in races.values()]
    for rival, name in RIVALS.items():
        for what in ("prefill", "decode"):
            ratios = [race["ours int8"][what] / race[name][what] for race in every if name in race]
            made[f"{what}_vs_{rival}"] = min(ratios) if ratios else None
    made["forced_token_speedup"] = min(one["speedup"] for one in saved["forced"].values())
    made["reverify_ttft_speedup"] = min(one["speedup"] for one in saved["reverify"].values())
    made["frame_steps_speedup"] = saved["frame_steps"]["speedup"]
    made["vision_passes_ratio"] = saved["frame_steps"]["vision_passes_ratio"]
    made["peak_memory_mb"] = max(race["ours int8"]["peak_memory_mb"] for race in every)
    return made


def as_text(report: dict[str, Any]) -> str:
    lines = [f"{report['machine']['cpu']}, {report['machine']['cores']} cores, load {report['machine']['load']:.1f}"]
    lines.append(f"{'tokens a second':<34}{'prefill':>10}{'decode':>10}{'peak MB':>10}")
    for threads, families in report["speeds"].items():
        for family, race in families.items():
            for name, speed in race.items():
                label = f"{family}, {threads} thread{'s' * (threads != '1')}: {name}"
                lines.append(
                    f"{label:<40}{speed['prefill']:>8.0f}{speed['decode']:>8.1f}{speed['peak_memory_mb']:>8.0f}"
                )
    saved = report["calls"]
    for family, one in saved["forced"].items():
        lines.append(
            f"{family}: forced tokens, a reply of {one['reply_tokens']} tokens: {one['ms_a_token']:.1f} ms a token for "
            f"{one['ms_a_token_plain']:.1f}"
        )
    for family, one in saved["reverify"].items():
        lines.append(f"{family}: first word of a second look: {one['again_ms']:.0f} ms for {one['first_ms']:.0f}")
    steps = saved["frame_steps"]
    lines.append(
        f"RoboMeter frame_steps, {report['prefixes']} prefixes: {steps['ours_s']:.1f} s for {steps['public_s']:.1f}, "
        f"{steps['tokens_ratio']:.2f} times fewer tokens, progress off by {steps['worst_difference']:.1e} at most"
    )
    lines += [f"{key:<26}{'not measured' if value is None else f'{value:.2f}'}" for key, value in report.items()
              if value is None or isinstance(value, float)]  # fmt: skip
    for name in report["absent"]:
        lines.append(f"{name} is not installed: pip install 'compass-edge[bench-engines]'")
    return "\n".join(lines)


def note(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender (7)")
    arguments = parser.parse_args()
    if "transformers fp32" in (absent := [entry.name for entry in ENTRIES if entry.missing()]):
        raise SystemExit("The models of this race are made with transformers: `make parity` installs it.")
    prefixes = PREFIXES if arguments.rounds > 1 else 9
    speeds = {
        str(threads): {family: text_speeds(family, threads, arguments.rounds) for family in BOTH} for threads in THREADS
    }
    saved = calls(1, arguments.rounds, prefixes)
    note("")
    report = {
        **headlines(speeds, saved),
        "speeds": speeds,
        "calls": saved,
        "prefixes": prefixes,
        "absent": absent,
        "machine": machine(),
        "versions": versions(
            "compass-edge", "onnxruntime", "llguidance", "torch", "transformers", "openvino", "nncf", "xllamacpp"
        ),
    }
    print(json.dumps(report, indent=2) if arguments.json else as_text(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
