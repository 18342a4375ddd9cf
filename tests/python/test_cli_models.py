"""`compass-edge models` as a person and a script meet it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from model_samples import FILES, forge, write_model

from compass_edge.cli.main import main
from compass_edge.engines.manifest import read_manifest
from compass_edge.engines.onnx.self_test import Comparison
from compass_edge.engines.store import find, installed, models_folder
from compass_edge.errors import UsageError

Compass = Callable[..., "Done"]


class Done(SimpleNamespace):
    code: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def compass(store: Path, capsys: pytest.CaptureFixture[str]) -> Compass:  # noqa: ARG001 - no test runs without it
    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        try:
            code = main(["models", *map(str, arguments)])
        except SystemExit as left:  # argparse
            code = int(left.code or 0)
        caught = capsys.readouterr()
        return Done(code=code, out=caught.out, error=caught.err)

    return run


# The store


def test_where_models_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", "/a/b")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("HOME", "/home/me")
    assert models_folder() == Path("/a/b")
    monkeypatch.delenv("COMPASS_EDGE_MODELS")
    assert models_folder() == Path("/data/compass-edge/models")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert models_folder() == Path("/home/me/.local/share/compass-edge/models")


def test_a_model_is_found_by_path_and_by_name(store: Path, tmp_path: Path) -> None:
    inside, outside = write_model(store / "in"), write_model(tmp_path / "out")
    assert find("in") == inside
    assert find(outside) == outside
    assert find(str(outside)) == outside
    with pytest.raises(UsageError, match=r"no model 'other'.*it has in\."):
        find("other")
    for name in ("../out", "", ".", ".."):  # names do not lead out of the store
        with pytest.raises(UsageError):
            find(name)
    (tmp_path / "plain").mkdir()
    with pytest.raises(UsageError, match=r"has no manifest\.json.*models export"):
        find(tmp_path / "plain")


@pytest.mark.usefixtures("store")
def test_an_empty_store_says_how_to_fill_it() -> None:
    with pytest.raises(UsageError, match=r"it is empty; `compass-edge models export"):
        find("tiny")
    assert installed() == []


# list


def test_list_shows_what_is_there_and_what_is_damaged(compass: Compass, store: Path) -> None:
    write_model(store / "alpha")
    write_model(store / "beta", kind="prm")
    os.truncate(store / "beta" / "decoder.onnx", 3)
    (store / "gamma").mkdir()
    (store / "delta.partial").mkdir()
    (store / ".old").mkdir()
    done = compass("list")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["name", "kind", "family", "dialect", "precision", "size", "engines", "source", "state"]
    assert lines[1].split() == ["alpha", "vlm", "qwen3_vl", "ort", "decoder", "int8,", "vision", "fp32", "870", "B", "-",
                                "Checkpoint-4B", "sound"]  # fmt: skip
    assert lines[2].endswith("damaged")
    assert lines[3].split() == ["gamma", *"-------", "damaged"]
    assert "should have 100 bytes, and it has 3" in done.out
    assert "delta.partial" in done.out
    assert ".old" not in done.out
    found = compass("list", "--json").json
    assert [(row["name"], row["sound"], row["kind"]) for row in found["models"]] == [
        ("alpha", True, "vlm"),
        ("beta", False, "prm"),
        ("gamma", False, None),
    ]
    assert found["models"][0]["bytes"] == sum(map(len, FILES.values()))
    assert found["store"] == str(store)
    assert found["unfinished"] == [str(store / "delta.partial")]


def test_list_of_nothing(compass: Compass) -> None:
    done = compass("list")
    assert done.code == 0
    assert "There is no model in" in done.out
    assert compass("list", "--json").json["models"] == []


# verify


@pytest.fixture
def self_test(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int | None]]:
    """In place of the engine: the graphs of these models are only bytes."""
    asked: list[tuple[Path, int | None]] = []

    def run(folder: Path, threads: int | None = None) -> Comparison:
        asked.append((folder, threads))
        worst = 0.5 if folder.name == "wrong" else 1e-7
        return Comparison(worst, 1e-3)

    monkeypatch.setattr("compass_edge.engines.onnx.self_test.self_test", run)
    return asked


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module


def test_verify_hashes_and_tests(compass: Compass, store: Path, self_test: list[tuple[Path, int | None]]) -> None:
    write_model(store / "tiny")
    done = compass("verify", "tiny", "--threads", "2")
    assert (done.code, done.out) == (
        0,
        "tiny: sound. 870 B as the manifest says; self-test 1e-07 off, 0.001 tolerated.\n",
    )
    assert self_test == [(store / "tiny", 2)]
    found = compass("verify", store / "tiny", "--json", "--no-self-test").json
    assert found["sound"] is True
    assert found["models"][0]["self_test"] is None
    assert len(self_test) == 1


def test_verify_examines_all_before_it_fails(compass: Compass, store: Path, self_test: list[Any]) -> None:
    for name in ("a", "b", "c", "wrong"):
        write_model(store / name)
    (store / "a" / "decoder.onnx").write_bytes(b"grapH" * 20)
    (store / "b" / "manifest.json").write_text("{}")
    done = compass("verify", "--all")
    assert done.code == 4
    starts = [line.split(".")[0] for line in done.out.splitlines()]
    assert starts == ["a: damaged", "b: damaged", "c: sound", "wrong: damaged"]
    assert [folder.name for folder, _ in self_test] == ["c", "wrong"]  # what is damaged is not loaded
    assert "0.5 off, and 0.001 is tolerated" in done.out
    done = compass("verify", "--all", "--json")
    assert done.code == 4
    assert [row["sound"] for row in done.json["models"]] == [False, False, True, False]
    assert done.json["sound"] is False
    assert compass("verify", "c").code == 0
    assert compass("verify", "c", "a").code == 4
    assert compass("verify", "a", "c").code == 4


@pytest.mark.parametrize("name", ["manifest.json", *FILES])
@pytest.mark.parametrize("place", [0, 0.5, -1])
def test_verify_of_a_flipped_byte_exits_4(compass: Compass, store: Path, name: str, place: float) -> None:
    path = write_model(store / "tiny") / name
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)
    done = compass("verify", "tiny", "--no-self-test")
    assert done.code == 4
    assert name in done.out


def test_verify_of_another_format_exits_4(compass: Compass, store: Path) -> None:
    forge(write_model(store / "tiny"), format=7)
    done = compass("verify", "tiny")
    assert done.code == 4
    assert "format 7, newer" in done.out


@pytest.mark.parametrize("arguments", [[], ["tiny", "--all"], ["--all"], ["nobody"]])
def test_verify_of_nothing_is_wrong_usage(compass: Compass, arguments: list[str]) -> None:
    done = compass("verify", *arguments)
    assert done.code == 2
    assert done.out == ""


# remove


def test_remove_takes_what_the_manifest_lists_and_says_what_it_left(compass: Compass, store: Path) -> None:
    write_model(store / "alone")
    write_model(store / "shared")
    (store / "shared" / "tokenizer" / "notes.txt").write_text("mine")
    done = compass("remove", "alone", "shared", "--yes", "--json")
    assert done.code == 0
    assert [row["left"] for row in done.json["removed"]] == [[], [str(store / "shared" / "tokenizer" / "notes.txt")]]
    assert [path.relative_to(store).as_posix() for path in sorted(store.rglob("*"))] == [
        "shared",
        "shared/tokenizer",
        "shared/tokenizer/notes.txt",
    ]


def test_remove_says_so(compass: Compass, store: Path) -> None:
    write_model(store / "a")
    (store / "a" / "x").write_text("")
    assert compass("remove", "a", "--yes").out == (
        f"Removed a, 870 B, from '{store}/a'. It was not alone there; left are: {store}/a/x.\n"
    )


def test_remove_of_a_damaged_model_works_while_its_manifest_is_whole(compass: Compass, store: Path) -> None:
    write_model(store / "a")
    (store / "a" / "decoder.onnx").unlink()
    assert compass("remove", "a", "--yes").code == 0
    assert not (store / "a").exists()


def test_remove_touches_nothing_that_it_does_not_know(compass: Compass, store: Path) -> None:
    write_model(store / "known")
    (store / "unknown").mkdir()
    (store / "unknown" / "file").write_text("")
    assert compass("remove", "known", "unknown", "--yes").code == 2
    write_model(store / "changed")
    (store / "changed" / "manifest.json").write_text("{}")
    done = compass("remove", "known", "changed", "--yes")
    assert done.code == 4
    assert "cannot be trusted" in done.error
    assert (store / "known" / "decoder.onnx").exists()  # all or nothing
    assert (store / "changed" / "decoder.onnx").exists()


def test_remove_never_reaches_outside(compass: Compass, store: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    for name in ("tokenizer.json", "decoder.onnx"):
        (away / name).write_text("precious")
    model = write_model(store / "linked")
    (model / "tokenizer" / "tokenizer.json").unlink()
    (model / "tokenizer").rmdir()
    (model / "tokenizer").symlink_to(away)
    (model / "decoder.onnx").unlink()
    (model / "decoder.onnx").symlink_to(away / "decoder.onnx")
    assert compass("remove", "linked", "--yes").code == 0
    assert sorted(path.read_text() for path in away.iterdir()) == ["precious", "precious"]
    whole = write_model(tmp_path / "whole")
    (store / "link").symlink_to(whole)
    assert compass("remove", "link", "--yes").code == 0
    assert not (store / "link").is_symlink()
    assert (whole / "decoder.onnx").exists()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 1), ("n\n", 1), ("", 1)])
def test_remove_asks_on_a_terminal(
    compass: Compass, store: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    write_model(store / "a")
    monkeypatch.setattr(sys, "stdin", _Terminal(answer))
    done = compass("remove", "a")
    assert done.code == code
    assert "Remove a (870 B)? [y/N]" in done.error
    assert (store / "a").exists() is (code == 1)


def test_remove_without_a_terminal_needs_yes(compass: Compass, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(store / "a")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    done = compass("remove", "a")
    assert done.code == 2
    assert "--yes" in done.error
    assert (store / "a" / "manifest.json").exists()


# export: here only what the command does around the exporter, which has tests of its own


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []

    def export_model(checkpoint: Path, out: Path, recipe: Any, *, name: str, on_progress: Any) -> Any:
        asked.append({"checkpoint": checkpoint, "out": out, "recipe": recipe, "name": name})
        assert not out.exists()
        partial = out.with_name(out.name + ".partial")
        partial.mkdir(exist_ok=True)
        for done in (0, 500, 1000):
            on_progress("decoder", done, 1000)
        if checkpoint.name == "stopped":
            raise KeyboardInterrupt
        write_model(partial, name=name, precision={"decoder": recipe.decoder})
        partial.rename(out)
        return read_manifest(out)

    monkeypatch.setitem(
        sys.modules, "compass_edge.export.model", _module("compass_edge.export.model", export_model=export_model)
    )
    monkeypatch.setitem(sys.modules, "onnx", _module("onnx"))
    return asked


def test_export_goes_into_the_store_under_the_checkpoints_name(
    compass: Compass, store: Path, exporter: list[dict[str, Any]]
) -> None:
    done = compass("export", "some/Qwen3-VL-4B")
    assert done.code == 0
    assert exporter[0]["checkpoint"] == Path("some/Qwen3-VL-4B")
    assert exporter[0]["out"] == store / "Qwen3-VL-4B"
    assert exporter[0]["name"] == "Qwen3-VL-4B"
    assert (exporter[0]["recipe"].decoder, exporter[0]["recipe"].vision) == ("int8", "fp32")
    assert done.out.endswith("Next: compass-edge models verify Qwen3-VL-4B\n")
    assert compass("verify", "Qwen3-VL-4B", "--no-self-test").code == 0


def test_every_option_reaches_the_recipe(compass: Compass, tmp_path: Path, exporter: list[dict[str, Any]]) -> None:
    out = tmp_path / "mine"
    done = compass("export", "c", "--name", "prm", "--out", out, "--kind", "robometer", "--dialect", "standard", "--precision",
                   "int4", "--vision", "fp16", "--embedding", "int8", "--block", "64", "--json")  # fmt: skip
    recipe = exporter[0]["recipe"]
    assert (exporter[0]["name"], exporter[0]["out"]) == ("prm", out)
    assert (recipe.kind, recipe.dialect, recipe.decoder, recipe.vision, recipe.embedding, recipe.block) == (
        "robometer", "standard", "int4", "fp16", "int8", 64)  # fmt: skip
    assert (done.json["name"], done.json["path"], done.json["bytes"]) == ("prm", str(out), 870)
    assert done.json["manifest"]["precision"] == {"decoder": "int4"}
    compass("export", "c", "--decoder", "fp32")
    assert exporter[1]["recipe"].decoder == "fp32"


def test_a_hubs_cache_gives_the_models_name(compass: Compass, tmp_path: Path, exporter: list[dict[str, Any]]) -> None:
    compass("export", tmp_path / "models--Qwen--Qwen3.5-9B" / "snapshots" / "0123abcd")
    assert exporter[0]["name"] == "Qwen3.5-9B"


@pytest.mark.parametrize(
    "arguments",
    [
        ["c", "--name", "a/b"],
        ["c", "--precision", "int3"],
        ["c", "--embedding", "int4"],
        ["c", "--block", "7"],
        ["c", "--dialect", "latin"],
        ["with space"],
        [],
    ],
)
def test_export_in_a_way_that_cannot_work(compass: Compass, exporter: list[Any], arguments: list[str]) -> None:
    assert compass("export", *arguments).code == 2
    assert exporter == []


def test_export_over_what_is_there(compass: Compass, store: Path, exporter: list[dict[str, Any]]) -> None:
    assert compass("export", "c").code == 0
    done = compass("export", "c")
    assert done.code == 2
    assert "--force" in done.error
    (store / "c" / "notes.txt").write_text("mine")
    done = compass("export", "c", "--force", "--precision", "fp32")
    assert done.code == 0
    assert read_manifest(store / "c").precision == {"decoder": "fp32"}
    assert "notes.txt" in done.error
    assert (store / ".c.old" / "notes.txt").read_text() == "mine"
    done = compass("export", "c", "--force")
    assert done.code == 2
    assert "is in the way" in done.error
    assert len(exporter) == 2


def test_export_never_replaces_what_it_does_not_know(compass: Compass, store: Path, exporter: list[Any]) -> None:
    (store / "c").mkdir(parents=True)
    assert compass("export", "c", "--force").code == 2
    write_model(store / "d")
    (store / "d" / "manifest.json").write_text("{}")
    done = compass("export", "d", "--force")
    assert done.code == 4
    assert "cannot be trusted" in done.error
    assert exporter == []


def test_a_stopped_export_leaves_the_store_as_it_was(compass: Compass, store: Path, exporter: list[Any]) -> None:
    write_model(store / "stopped")
    before = read_manifest(store / "stopped")
    done = compass("export", "stopped", "--force")
    assert done.code == 130
    assert "the same command goes on from there" in done.error
    assert read_manifest(store / "stopped") == before
    assert [model.name for model in installed()] == ["stopped"]
    assert len(exporter) == 1


def test_without_onnx_the_cure_is_said(compass: Compass, exporter: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = compass("export", "c")
    assert done.code == 3
    assert "pip install 'compass-edge[export]'" in done.error
    assert exporter == []


def test_a_store_that_cannot_be_is_a_sentence(compass: Compass, store: Path, exporter: list[Any]) -> None:
    store.write_text("a file in its place")
    done = compass("export", "c")
    assert done.code == 1
    assert "could not be written" in done.error
    assert compass("verify", "x" * 5000).code == 2
    assert exporter == []


def test_no_action_is_wrong_usage(compass: Compass) -> None:
    done = compass()
    assert done.code == 2
    assert "models list" in done.error


@pytest.mark.parametrize("action", ["export", "list", "verify", "remove"])
def test_every_action_explains_itself(compass: Compass, action: str) -> None:
    done = compass(action, "--help")
    assert done.code == 0
    assert "--json" in done.out
