"""Nothing in a model's folder can change unseen, and each change has its own sentence and exit code 4."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_samples import FILES, forge, manifest_of, write_model

from compass_edge import __version__
from compass_edge.engines import file_record
from compass_edge.engines.manifest import (
    FORMAT,
    check_name,
    inspect,
    read_manifest,
    record_files,
    verify,
    write_manifest,
)
from compass_edge.errors import IntegrityError, UsageError

CURE = r"[\s\S]*Export the model again, or fetch its folder again\."


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "tiny")


def test_what_is_written_is_what_is_read(model: Path) -> None:
    written = manifest_of(model)
    assert read_manifest(model) == inspect(model) == verify(model) == written
    assert (written.format, written.made_with) == (FORMAT, __version__)
    assert written.bytes == sum(map(len, FILES.values()))
    assert set(written.files) == set(FILES)


def test_the_same_manifest_gives_the_same_bytes_and_leaves_nothing_else(model: Path) -> None:
    before = (model / "manifest.json").read_bytes()
    write_manifest(model, manifest_of(model, architecture=dict(reversed(manifest_of(model).architecture.items()))))
    assert (model / "manifest.json").read_bytes() == before
    assert list(json.loads(before)) == sorted(json.loads(before))
    assert sorted(path.name for path in model.iterdir()) == [
        "decoder.onnx",
        "decoder.onnx.data",
        "manifest.json",
        "tokenizer",
    ]


def test_a_manifest_that_fails_to_be_written_leaves_the_old_one(model: Path) -> None:
    before = (model / "manifest.json").read_bytes()
    for wrong in ({"x": float("nan")}, {"x": np.float32(1)}):
        with pytest.raises(UsageError, match="holds what JSON cannot"):
            write_manifest(model, manifest_of(model, golden=wrong))
    with pytest.raises(IntegrityError, match="'dialect'"):
        write_manifest(model, manifest_of(model, dialect="latin"))
    assert (model / "manifest.json").read_bytes() == before


def test_progress_is_in_bytes_up_to_all_of_them(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_record, "_BLOCK", 100)
    seen: list[int] = []
    verify(model, seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == verify(model).bytes
    assert len(seen) > 8
    recorded: list[int] = []
    record_files(model, recorded.append)
    assert recorded[-1] == seen[-1]


@settings(max_examples=300)
@given(data=st.data())
def test_any_changed_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    model = tmp_path_factory.getbasetemp() / "flipped"
    if not model.exists():
        write_model(model)
    path = model / data.draw(st.sampled_from(["manifest.json", *FILES]))
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    try:
        with pytest.raises(IntegrityError, match=path.name):
            verify(model)
    finally:
        path.write_bytes(whole)
    verify(model)


@pytest.mark.parametrize("name", ["manifest.json", *FILES])
def test_any_truncation_is_found_before_hashing(model: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_record, "file_sha256", lambda *_: pytest.fail("hashed before the sizes were looked at"))
    whole = (model / name).read_bytes()
    for length in (0, 1, len(whole) - 1):
        (model / name).write_bytes(whole[:length])
        with pytest.raises(IntegrityError, match=f"{name}'" + CURE):
            verify(model)


def test_a_longer_file_is_found(model: Path) -> None:
    with (model / "decoder.onnx").open("ab") as file:
        file.write(b"x")
    with pytest.raises(IntegrityError, match=r"decoder\.onnx' should have 100 bytes, and it has 101"):
        inspect(model)


def test_a_hash_names_both(model: Path) -> None:
    (model / "decoder.onnx").write_bytes(b"grapH" * 20)
    record = read_manifest(model).files["decoder.onnx"]
    inspect(model)  # the quick look does not see it
    with pytest.raises(
        IntegrityError, match=rf"decoder\.onnx' should have the sha256 {record.sha256}, and it has \w{{64}}"
    ):
        verify(model)


def _missing(model: Path, _away: Path) -> None:
    (model / "decoder.onnx").unlink()


def _link_out(model: Path, away: Path) -> None:
    shutil.move(model / "decoder.onnx", away / "decoder.onnx")
    (model / "decoder.onnx").symlink_to(away / "decoder.onnx")


def _folder_link_out(model: Path, away: Path) -> None:
    shutil.move(model / "tokenizer", away / "tokenizer")
    (model / "tokenizer").symlink_to(away / "tokenizer")


def _manifest_link_out(model: Path, away: Path) -> None:
    shutil.move(model / "manifest.json", away / "manifest.json")
    (model / "manifest.json").symlink_to(away / "manifest.json")


def _circle(model: Path, _away: Path) -> None:
    (model / "decoder.onnx").unlink()
    (model / "decoder.onnx").symlink_to("decoder.onnx")


def _folder(model: Path, _away: Path) -> None:
    (model / "decoder.onnx").unlink()
    (model / "decoder.onnx").mkdir()


def _pipe(model: Path, _away: Path) -> None:
    (model / "decoder.onnx").unlink()
    os.mkfifo(model / "decoder.onnx")


def _file_for_folder(model: Path, _away: Path) -> None:
    shutil.rmtree(model / "tokenizer")
    (model / "tokenizer").write_text("")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_missing, r"decoder\.onnx' should be there by the manifest, and it is not"),
        (_link_out, r"decoder\.onnx' .*leads out of the folder, to '.*away"),
        (_folder_link_out, r"tokenizer\.json' .*leads out of the folder"),
        (_manifest_link_out, r"manifest\.json' .*leads out of the folder"),
        (_circle, r"decoder\.onnx' should be a file by the manifest, and it cannot be reached"),
        (_folder, r"decoder\.onnx' should be a regular file"),
        (_pipe, r"decoder\.onnx' should be a regular file"),
        (_file_for_folder, r"tokenizer\.json' should be there"),
    ],
)
def test_files_that_are_not_what_they_seem(
    model: Path, tmp_path: Path, damage: Callable[[Path, Path], None], sentence: str
) -> None:
    (tmp_path / "away").mkdir()
    damage(model, tmp_path / "away")
    with pytest.raises(IntegrityError, match=sentence + CURE):
        verify(model)


def test_links_that_stay_inside_and_a_folder_behind_a_link_are_fine(model: Path, tmp_path: Path) -> None:
    (model / "decoder.onnx").rename(model / "kept")
    (model / "decoder.onnx").symlink_to("kept")
    (tmp_path / "link").symlink_to(model)
    verify(tmp_path / "link")


@pytest.mark.parametrize("name", ["more.onnx", "weights.data", "tokenizer/hidden.onnx", "x.onnx_data", "x.ort"])
def test_a_graph_that_nobody_vouches_for_is_refused(model: Path, name: str) -> None:
    (model / name).write_bytes(b"")
    with pytest.raises(IntegrityError, match=rf"{name}' .*does not name it.*remove it"):
        inspect(model)


def test_other_files_may_lie_beside(model: Path) -> None:
    (model / "README.md").write_text("mine")
    verify(model)


RECORD = {"bytes": 1, "sha256": "0" * 64}
FORGED: list[tuple[dict[str, Any], str]] = [
    ({"format": FORMAT + 1}, r"format 2, newer than the format 1.*update compass-edge"),
    ({"format": 0}, "format 0, older than the format 1.*export the model again"),
    ({"format": "1"}, "should say its format"),
    ({"format": True}, "should say its format"),
    ({"format": ...}, "should say its format"),
    ({"kind": "llm"}, "'kind' .* should be vlm or prm, and is 'llm'"),
    ({"dialect": "latin"}, "'dialect' .* should be ort or standard, and is 'latin'"),
    ({"name": "../x"}, "'name'"),
    ({"name": ""}, "'name' .* should be a text"),
    ({"family": 3}, "'family' .* should be a text"),
    ({"family": ...}, "lacks 'family'"),
    ({"colour": "red"}, "has an unknown 'colour'"),
    ({"golden": []}, "'golden' .* should be an object"),
    ({"precision": {"decoder": 8}}, r"'precision\.decoder' .* should be a text, and is 8"),
    ({"source": {"name": None}}, r"'source\.name' .* should be a text"),
    ({"files": {"a.onnx": {"bytes": 1}}}, r"'files\.a\.onnx' .* should be bytes and sha256"),
    ({"files": {"a.onnx": {**RECORD, "bytes": -1}}}, r"'files\.a\.onnx\.bytes'"),
    ({"files": {"a.onnx": {**RECORD, "bytes": True}}}, r"'files\.a\.onnx\.bytes'"),
    ({"files": {"a.onnx": {**RECORD, "sha256": "0" * 63 + "G"}}}, r"'files\.a\.onnx\.sha256' .* 64 hex digits"),
    *[
        ({"files": {name: RECORD}}, "only files inside the folder")
        for name in (
            "../x.onnx",
            "/etc/passwd",
            "a/../../x",
            "a//b",
            "./a",
            "",
            ".",
            "a\\b",
            "a\0b",
            "manifest.json",
            "a/",
        )
    ],
    ({"files": {"weights.pkl": RECORD}}, r"'weights\.pkl', and such a file can run code"),
]


@pytest.mark.parametrize(("changes", "sentence"), FORGED, ids=range(len(FORGED)))
def test_a_manifest_that_says_what_cannot_be(model: Path, changes: dict[str, Any], sentence: str) -> None:
    forge(model)
    verify(model)  # the forger's hash does fit
    forge(model, **changes)
    with pytest.raises(IntegrityError, match=sentence):
        read_manifest(model)


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{", "\x00", "[" * 100_000, '{"format": 1}', '{"format": 1, "a": NaN}']
)
def test_a_manifest_that_is_none(model: Path, text: str) -> None:
    (model / "manifest.json").write_text(text)
    with pytest.raises(IntegrityError, match=r"manifest\.json'" + CURE):
        read_manifest(model)


def test_a_manifest_nested_too_deeply_to_write_again(model: Path) -> None:
    (model / "manifest.json").write_text('{"format": 1, "golden": ' + "[" * 900 + "]" * 900 + "}")
    with pytest.raises(IntegrityError, match=r"manifest\.json'" + CURE):
        read_manifest(model)


def test_a_number_that_is_changed_by_hand_is_found(model: Path) -> None:
    path = model / "manifest.json"
    path.write_text(path.read_text().replace('"layers": 2', '"layers": 3'))
    with pytest.raises(IntegrityError, match="has changed since it was written"):
        read_manifest(model)


def test_a_giant_manifest_is_not_parsed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.truncate(model / "manifest.json", (32 << 20) + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("read before its size was looked at"))
    with pytest.raises(IntegrityError, match="no manifest has more than"):
        read_manifest(model)


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=r"has no manifest\.json.*models export"):
        verify(tmp_path)


def test_a_manifest_that_was_being_written_is_no_file_of_the_model(model: Path) -> None:
    (model / ".manifest.json.partial").write_text("{")
    assert set(record_files(model)) == set(FILES)


def test_recording_refuses_what_verifying_would(model: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("")
    (model / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(IntegrityError, match="leads out of the folder"):
        record_files(model)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a b", "x.partial", "a" * 101, "-x", "a\n"])
def test_names_that_no_model_has(name: str) -> None:
    with pytest.raises(UsageError, match="A model's name"):
        check_name(name)
    assert check_name("Qwen3.5-9B_int4") == "Qwen3.5-9B_int4"
