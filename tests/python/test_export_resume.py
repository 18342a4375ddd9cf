"""An export that is stopped goes on behind its last finished part, and the same input always gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkpoint_samples import write_sample
from exported_samples import Samples

from compass_edge.cli import models_export
from compass_edge.cli.main import main
from compass_edge.export import model as exporter
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe

PARTS = ("vision", "embedding", "decoder")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def identity(path: Path) -> tuple[int, int]:
    """Another one if it was written again."""
    about = path.stat()
    return about.st_ino, about.st_mtime_ns


def stopping(part: str, after: int = 0) -> Any:
    """`on_progress` that is like Ctrl-C once so many bytes of the part have been read."""

    def tell(now: str, done: int, _total: int) -> None:
        if now == part and done > after:
            raise KeyboardInterrupt

    return tell


@pytest.fixture
def stopped(samples: Samples, tmp_path: Path) -> Path:
    """The unfinished folder of an export that was stopped within the decoder."""
    with pytest.raises(KeyboardInterrupt):
        export_model(
            samples.checkpoint("qwen3-vl"), tmp_path / "m", Recipe(), name="m", on_progress=stopping("decoder", 9999)
        )
    return tmp_path / "m.partial"


def test_the_same_input_gives_the_same_bytes(samples: Samples, tmp_path: Path) -> None:
    for kind, recipe in (
        ("qwen3.5", Recipe()),
        ("robometer", Recipe(dialect="standard", decoder="int4", vision="fp16")),
    ):
        made = []
        for run in "ab":
            (tmp_path / f"{kind}-{run}").mkdir()
            export_model(samples.checkpoint(kind), tmp_path / f"{kind}-{run}" / "m", recipe, name="m")
            made.append(content(tmp_path / f"{kind}-{run}"))
        assert made[0] == made[1]


@pytest.mark.parametrize("part", [*PARTS, "golden", "checkpoint"])
def test_it_goes_on_where_it_was_stopped(samples: Samples, tmp_path: Path, part: str) -> None:
    source, out = samples.checkpoint("qwen3-vl"), tmp_path / "m"
    export_model(source, tmp_path / "whole", Recipe(), name="m")
    with pytest.raises(KeyboardInterrupt):
        export_model(source, out, Recipe(), name="m", on_progress=stopping(part, -1 if part == "golden" else 0))
    assert not out.exists()
    partial = tmp_path / "m.partial"
    finished = () if part == "checkpoint" else PARTS[: PARTS.index(part)] if part in PARTS else PARTS
    if part != "checkpoint":  # hashed before anything is written
        assert [name for name in PARTS if (partial / f"{name}.onnx").exists()] == list(finished)
    before = {name: identity(partial / name) for part in finished for name in (f"{part}.onnx", f"{part}.onnx.data")}
    told: list[str] = []
    export_model(source, out, Recipe(), name="m", on_progress=lambda now, done, total: told.append(now))
    assert {name: identity(out / name) for name in before} == before
    assert [name for name in PARTS if name in told] == [name for name in PARTS if name not in finished]
    assert content(out) == content(tmp_path / "whole")
    assert not partial.exists()


def test_the_command_says_so_and_goes_on(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(tmp_path))
    command = ["models", "export", str(samples.checkpoint("qwen3-vl")), "--name", "m"]

    class Stopping(models_export.ByteBars):  # type: ignore[name-defined, misc]
        def update(self, label: str, done: int, total: int) -> None:  # noqa: ARG002
            if label == "exporting decoder":
                raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(models_export, "ByteBars", Stopping)
        assert main(command) == 130
    error = capsys.readouterr().err
    assert f"What is finished is in '{tmp_path / 'm.partial'}': the same command goes on from there." in error
    assert "Traceback" not in error
    before = identity(tmp_path / "m.partial" / "vision.onnx")
    assert main(["models", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert (listed["models"], listed["unfinished"]) == ([], [str(tmp_path / "m.partial")])
    assert main(command) == 0
    assert identity(tmp_path / "m" / "vision.onnx") == before
    assert main(["models", "verify", "m"]) == 0


@pytest.mark.parametrize("other", ["recipe", "checkpoint", "version", "damaged", "cut", "file"])
def test_what_belongs_to_another_export_is_discarded(
    samples: Samples, stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    source, recipe = samples.checkpoint("qwen3-vl", seed=1 if other == "checkpoint" else 0), Recipe()
    if other == "recipe":
        recipe = Recipe(vision="int8")
    elif other == "version":
        monkeypatch.setattr(exporter, "__version__", "9.9.9")
    elif other == "damaged":
        (stopped / "export.json").write_bytes(b'{"source"\x00')
    elif other == "cut":
        (stopped / "export.json").unlink()
    else:
        (stopped / "left.onnx").write_bytes(b"of a version that wrote such a file")
    if other == "file":
        (stopped / "export.json").write_text("{}")
    before = identity(stopped / "vision.onnx")
    export_model(source, tmp_path / "m", recipe, name="m")
    assert identity(tmp_path / "m" / "vision.onnx") != before
    export_model(source, tmp_path / "fresh", recipe, name="m")
    assert content(tmp_path / "m") == content(tmp_path / "fresh")


def test_force_keeps_the_old_model_until_the_new_one_is_whole(
    samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(tmp_path))
    command = ["models", "export", str(samples.checkpoint("qwen3-vl")), "--name", "m"]
    assert main([*command, "--precision", "fp32"]) == 0
    old = content(tmp_path / "m")
    record = exporter.record_golden

    def failing(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter, "record_golden", failing)
    assert main([*command, "--force"]) == 130
    assert content(tmp_path / "m") == old
    assert main(["models", "verify", "m"]) == 0
    monkeypatch.setattr(exporter, "record_golden", record)
    assert main([*command, "--force"]) == 0
    assert content(tmp_path / "m") != old
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def save(_graph: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as during:
        during.setattr("compass_edge.export.graph.Graph._save", save)
        yield


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_sample("qwen3-vl", tmp_path / "c")
    assert main(["models", "export", str(folder), "--out", str(tmp_path / "m")]) == 1
    assert "could not be written to" in (error := capsys.readouterr().err)
    assert "No space left on device" in error
