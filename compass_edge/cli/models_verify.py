"""`compass-edge models verify`: every byte against its hash, then a known question against its known answer."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compass_edge.cli.byte_size import ByteBars, byte_size
from compass_edge.cli.models_build import engine_fields
from compass_edge.cli.whole import at_least
from compass_edge.engines.engine_record import verify_engines
from compass_edge.engines.manifest import read_manifest, verify
from compass_edge.engines.store import find, installed
from compass_edge.errors import CompassError, IntegrityError, UsageError


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    path: str
    bytes: int
    engines: list[dict[str, Any]]  # that were built of it, for whatever chip
    self_test: dict[str, float] | None  # worst difference and what is tolerated; None: not run
    fault: str | None
    exit_code: int

    @property
    def sound(self) -> bool:
        return self.fault is None


def run(arguments: argparse.Namespace) -> int:
    verdicts = []
    with ByteBars() as bars:
        for name, folder in _wanted(arguments):
            verdicts.append(_examine(name, folder, arguments, bars))
            if not arguments.json:
                _show(verdicts[-1])
    if arguments.json:
        rows = [{**asdict(verdict), "sound": verdict.sound} for verdict in verdicts]
        print(json.dumps({"models": rows, "sound": all(verdict.sound for verdict in verdicts)}, indent=1))
    codes = {verdict.exit_code for verdict in verdicts}
    return IntegrityError.exit_code if IntegrityError.exit_code in codes else max(codes)


def _wanted(arguments: argparse.Namespace) -> list[tuple[str, Path]]:
    if bool(arguments.names) == arguments.all:
        raise UsageError(
            "Say which models to verify: their names, or --all, and not both. `compass-edge models list` has them."
        )
    if arguments.names:
        return [(name, find(name)) for name in dict.fromkeys(arguments.names)]
    found = [(model.name, model.path) for model in installed()]
    if not found:
        raise UsageError("There is no model to verify. `compass-edge models export CHECKPOINT` makes one.")
    return found


def _examine(name: str, folder: Path, arguments: argparse.Namespace, bars: ByteBars) -> Verdict:
    """Its faults are kept, not raised: the models behind it are examined too."""
    size, tested = 0, None
    engines: list[dict[str, Any]] = []
    try:
        manifest = read_manifest(folder)
        size, engines = manifest.bytes + manifest.engine_bytes, engine_fields(manifest.engines)
        verify(folder, lambda done: bars.update(f"hashing {name}", done, size))
        verify_engines(
            folder,
            manifest.engines,
            manifest.files,
            lambda done: bars.update(f"hashing {name}", manifest.bytes + done, size),
        )
        if not arguments.no_self_test:
            tested = _self_test(folder, arguments.threads)
    except CompassError as error:
        return Verdict(name, str(folder), size, engines, None, str(error), error.exit_code)
    if tested is not None and not tested.passed:
        fault = tested.sentence(folder)
        return Verdict(name, str(folder), size, engines, _numbers(tested), fault, IntegrityError.exit_code)
    return Verdict(name, str(folder), size, engines, _numbers(tested) if tested is not None else None, None, 0)


def _self_test(folder: Path, threads: int | None) -> Any:
    from compass_edge.engines.onnx.self_test import self_test

    return self_test(folder, threads)


def _numbers(tested: Any) -> dict[str, float]:
    return {"worst": float(tested.worst), "tolerance": float(tested.tolerance)}


def _show(verdict: Verdict) -> None:
    if verdict.fault is not None:
        print(f"{verdict.name}: damaged. {verdict.fault}")
        return
    tested = "not run"
    if verdict.self_test is not None:
        tested = f"{verdict.self_test['worst']:.2g} off, {verdict.self_test['tolerance']:.2g} tolerated"
    print(f"{verdict.name}: sound. {byte_size(verdict.bytes)} as the manifest says; self-test {tested}.")
    for engine in verdict.engines:
        print(
            f"  {engine['part']} for {engine['target']} by {engine['flavour']} {engine['version']}, {byte_size(engine['bytes'])}: as it "
            "was built; it runs where that chip is"
        )


def register(actions: Any) -> None:
    parser = actions.add_parser(
        "verify",
        help="prove that a model is what was exported",
        description="Compares every byte with the manifest's hashes, then runs the model on the input in its manifest and compares "
        "the output. All models named are examined; one that is not sound makes the exit code 4.",
        epilog="Examples:\n  compass-edge models verify Qwen3-VL-4B-Instruct\n  compass-edge models verify --all --no-self-test --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model of the store, or the folder of one")
    parser.add_argument("--all", action="store_true", help="every model of the store")
    parser.add_argument("--no-self-test", action="store_true", help="hashes alone: no runtime, little memory")
    parser.add_argument("--threads", type=at_least(1), metavar="N", help="of the self-test (one a core)")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)
