"""`compass-edge bench`: runs what lies in benchmarks/ and prints it."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import compass_edge
from compass_edge.errors import EnvironmentFault, UsageError


def _folder() -> Path:
    """benchmarks/ of the source tree: beside the package when installed with -e, else of the current folder."""
    for root in (Path(compass_edge.__file__).parent.parent, Path.cwd()):
        if (root / "benchmarks" / "frames.py").is_file():
            return root / "benchmarks"
    raise EnvironmentFault(
        "The benchmarks live in compass-edge's source tree, not in the installed package: clone the repository and run "
        "`compass-edge bench` in its folder."
    )


def _races(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith(("test_", "conftest", "_")))


def _micro(arguments: argparse.Namespace, folder: Path) -> int:
    if importlib.util.find_spec("pytest_benchmark") is None:
        raise EnvironmentFault("The micro-benchmarks run on pytest-benchmark: pip install 'compass-edge[bench]'.")
    with tempfile.TemporaryDirectory(prefix="compass-edge-") as scratch:
        report = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "pytest", str(folder), "-q", "-p", "no:cacheprovider", "--benchmark-only",
                   "--benchmark-sort=fullname", "--benchmark-columns=median,iqr,ops,rounds",
                   f"--benchmark-json={report}"]  # fmt: skip
        done = subprocess.run(command, stdout=subprocess.DEVNULL if arguments.json else None, check=False)
        if arguments.json and report.is_file():
            cases = json.loads(report.read_text())
            rows = {case["fullname"]: case["stats"] for case in cases["benchmarks"]}
            print(json.dumps({"machine": cases["machine_info"], "cases": rows}, indent=2))
    return 1 if done.returncode else 0


def run(arguments: argparse.Namespace) -> int:
    folder = _folder()
    if arguments.name is None:
        return _micro(arguments, folder)
    if arguments.name not in _races(folder):
        raise UsageError(f"There is no benchmark '{arguments.name}'. There are: {', '.join(_races(folder))}.")
    command = [sys.executable, str(folder / f"{arguments.name}.py"), *(["--json"] if arguments.json else [])]
    if arguments.rounds is not None:
        command += ["--rounds", str(arguments.rounds)]
    return subprocess.run(command, check=False).returncode


def register(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="this machine, ours beside its rivals",
        description="Without a name: the micro-benchmarks (pytest-benchmark). With one: a race in which ours and its rivals "
        "take turns in one run, so that a noisy machine disturbs all alike; results are ratios.",
        epilog="Examples:\n  compass-edge bench\n  compass-edge bench frames --json > frames.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", help="a race: a file of benchmarks/, for example frames")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of a race")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=run)
