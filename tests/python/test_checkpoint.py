"""Checkpoints are read exactly, one tensor at a time, and what is wrong with one is said in a sentence that names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors_samples import (
    bf16,
    f32,
    header_of,
    numbers,
    write_checkpoint,
    write_file,
    write_safetensors,
    write_shards,
)

from compass_edge.errors import CompassError, IntegrityError, UsageError
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.safetensors_file import SafetensorsFile

WEIGHTS = "model.safetensors"


def test_every_float_type_is_read_exactly(tmp_path: Path) -> None:
    wide = np.array([[1.5, -0.0], [3.0e38, 2.0**-140]], np.float32)
    halves = np.array([1.0, -65504.0, 6e-8], "<f2")
    doubles = np.array([0.1, -7.0], "<f8")
    brains = np.array([1.0, -2.5, np.inf, 2.0**-126], np.float32)
    folder = write_checkpoint(
        tmp_path / "all",
        {
            "wide": f32(wide),
            "half": ("F16", (3,), halves.tobytes()),
            "double": ("F64", (2,), doubles.tobytes()),
            "brain": bf16(brains),
            "one": f32(3.0),
            "none": ("F32", (0, 4), b""),
        },
    )
    checkpoint = Checkpoint(folder)
    expected = {
        "wide": wide,
        "half": halves,
        "double": doubles,
        "brain": brains,
        "one": np.float32(3),
        "none": np.empty((0, 4)),
    }
    assert list(checkpoint.names()) == list(expected)
    for name, value in expected.items():
        found = checkpoint.read(name, np.shape(value))
        assert type(found) is np.ndarray
        assert found.dtype == np.float32
        assert found.flags.writeable
        assert found.tobytes() == np.asarray(value, np.float32).tobytes()
        assert checkpoint.shape(name) == np.shape(value)
    assert np.signbit(checkpoint.read("wide")[0, 1])


def test_what_is_read_is_a_copy(tmp_path: Path) -> None:
    checkpoint = Checkpoint(write_checkpoint(tmp_path / "c", {"a": f32(numbers(4, 3)), "b": bf16(numbers(4))}))
    before = checkpoint.digest()
    for name in ("a", "b"):
        checkpoint.read(name)[...] = 7
    assert checkpoint.digest() == before
    assert np.array_equal(checkpoint.read("a"), numbers(4, 3))


@pytest.mark.parametrize("stored", [f32, bf16])
@pytest.mark.parametrize("rows", [slice(0, 2), slice(2, 5), slice(4, 99), slice(-1, None), slice(3, 1), slice(None)])
def test_rows_are_a_part_of_the_first_axis(tmp_path: Path, stored: Callable[..., Any], rows: slice) -> None:
    checkpoint = Checkpoint(
        write_checkpoint(tmp_path / "c", {"before": f32(numbers(3)), "a": stored(numbers(5, 2, 3))})
    )
    assert np.array_equal(checkpoint.read("a", (5, 2, 3), rows=rows), numbers(5, 2, 3)[rows])


def test_rows_with_gaps_or_of_a_single_number_are_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(write_checkpoint(tmp_path / "c", {"a": f32(numbers(5, 2)), "one": f32(3.0)}))
    with pytest.raises(UsageError, match="without gaps, and the step was 2"):
        checkpoint.read("a", rows=slice(0, 4, 2))
    with pytest.raises(UsageError, match=r"'one'.*is one number"):
        checkpoint.read("one", rows=slice(0, 1))


def test_agrees_with_the_reference_reader(tmp_path: Path) -> None:
    reference = pytest.importorskip("safetensors.numpy")
    dice = np.random.default_rng(0)
    tensors = {f"t.{n}": dice.standard_normal((n, 5)).astype(kind) for n, kind in ((1, "f2"), (3, "f4"), (7, "f8"))}
    folder = write_checkpoint(tmp_path / "c", {})
    reference.save_file(tensors, folder / WEIGHTS, metadata={"format": "np"})
    checkpoint = Checkpoint(folder)
    for name, value in tensors.items():
        assert np.array_equal(checkpoint.read(name, value.shape), value.astype(np.float32))
    ours = write_safetensors(tmp_path / "ours.safetensors", {"a": f32(numbers(2, 3))})
    assert np.array_equal(reference.load_file(ours)["a"], numbers(2, 3))


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    shards = {
        "model-00001-of-00002.safetensors": {"a": f32(numbers(2))},
        "model-00002-of-00002.safetensors": {"b": f32(numbers(3))},
    }
    checkpoint = Checkpoint(write_shards(tmp_path / "c", shards))
    assert set(checkpoint.names()) == {"a", "b"}
    assert "b" in checkpoint
    assert "c" not in checkpoint
    assert np.array_equal(checkpoint.read("b"), numbers(3))
    assert [path.name for path in checkpoint.files()] == ["config.json", *shards]
    (tmp_path / "c" / "model.safetensors.index.json").unlink()  # the names say enough
    assert set(Checkpoint(tmp_path / "c").names()) == {"a", "b"}


def test_weights_behind_links_are_read_as_in_a_hubs_cache(tmp_path: Path) -> None:
    blob = write_safetensors(tmp_path / "blob", {"a": f32(numbers(2))})
    folder = write_checkpoint(tmp_path / "snapshot", {})
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).symlink_to(blob)
    checkpoint = Checkpoint(folder)
    assert np.array_equal(checkpoint.read("a"), numbers(2))
    assert checkpoint.files()[1].name == WEIGHTS


def test_digest_covers_name_size_and_content(tmp_path: Path) -> None:
    def made(name: str) -> Path:
        return write_checkpoint(tmp_path / name, {"a": f32(numbers(8))})

    seen: list[int] = []
    first = Checkpoint(made("first")).digest(seen.append)
    assert first == Checkpoint(made("second")).digest()
    assert seen[-1] == sum(path.stat().st_size for path in (tmp_path / "first").iterdir())
    changed = made("changed")
    data = bytearray((changed / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (changed / WEIGHTS).write_bytes(data)
    other_config = made("config")
    (other_config / "config.json").write_text('{"model_type": "tess"}')
    renamed = made("renamed")
    (renamed / WEIGHTS).rename(renamed / "weights.safetensors")
    assert len({first, *(Checkpoint(folder).digest() for folder in (changed, other_config, renamed))}) == 4


def test_a_missing_tensor_names_the_nearest(tmp_path: Path) -> None:
    checkpoint = Checkpoint(
        write_checkpoint(tmp_path / "c", {"model.layers.0.q_proj.weight": f32(1.0), "lm_head": f32(1.0)})
    )
    with pytest.raises(
        UsageError, match=r"'model.layer.0.q_proj.weight'.*model.safetensors.*model\.layers\.0\.q_proj\.weight\."
    ):
        checkpoint.read("model.layer.0.q_proj.weight")
    with pytest.raises(UsageError, match="No name in it is near"):
        checkpoint.shape("xyz")


def test_another_shape_names_file_tensor_and_both_shapes(tmp_path: Path) -> None:
    checkpoint = Checkpoint(write_checkpoint(tmp_path / "c", {"a": f32(numbers(2, 3))}))
    with pytest.raises(UsageError, match=r"'a' in '.*model\.safetensors' has the shape \[2, 3\].*must have \[3, 2\]"):
        checkpoint.read("a", (3, 2))
    with pytest.raises(UsageError, match=r"\[2, 3\].*\[4, 3\]"):
        checkpoint.read("a", (4, 3), rows=slice(0, 1))


def test_what_is_no_float_is_known_and_not_read(tmp_path: Path) -> None:
    checkpoint = Checkpoint(
        write_checkpoint(tmp_path / "c", {"q": ("F8_E4M3", (4,), b"1234"), "n": ("F4", (2, 3), b"123")})
    )
    assert checkpoint.shape("n") == (2, 3)
    with pytest.raises(UsageError, match=r"'q'.*stored as F8_E4M3"):
        checkpoint.read("q")


def test_a_double_beyond_float32_is_not_made_infinite(tmp_path: Path) -> None:
    checkpoint = Checkpoint(write_checkpoint(tmp_path / "c", {"d": ("F64", (1,), np.array([1e300], "<f8").tobytes())}))
    with pytest.raises(UsageError, match=r"'d'.*float32 cannot hold"):
        checkpoint.read("d")


def _entry(**changes: Any) -> dict[str, Any]:
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


HEADERS = [
    (_entry(dtype="F33"), "'a'.*type 'F33'"),
    (_entry(dtype=["F32"]), "'a'.*does not have"),
    (_entry(shape=[3]), r"'a'.*\[3\], which takes 12 bytes.*span 8"),
    (_entry(shape=[-2]), "'a'.*shape that no tensor has"),
    (_entry(shape=[2.0]), "'a'.*shape that no tensor has"),
    (_entry(shape=[True, 2]), "'a'.*shape that no tensor has"),
    (_entry(shape=[1] * 33), "'a'.*shape that no tensor has"),
    (_entry(shape=[0, 1 << 60], data_offsets=[0, 0]), "'a'.*shape that no tensor has"),
    (_entry(data_offsets=[8, 0]), "'a'.*two offsets"),
    (_entry(data_offsets=[0, 4, 8]), "'a'.*two offsets"),
    (_entry(data_offsets=[-8, 0]), "'a'.*two offsets"),
    (_entry(shape=[1], data_offsets=[4, 8]), "'a'.*leaves a gap"),
    (_entry(shape=[4], data_offsets=[0, 16]), "truncated: the tensor 'a'"),
    (_entry(shape=[1], data_offsets=[0, 4]), "should end at byte"),
    ({**_entry(), "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, "'b'.*overlaps"),
    ({"a": [1, 2]}, "'a'.*dtype, a shape"),
    ({"a": {"dtype": "F32", "shape": [2]}}, "'a'.*dtype, a shape"),
    ([1, 2], "should be a JSON object"),
    (b'{"a": 1, "a": 2}', "names 'a' twice"),
    (b"{not json", "not what safetensors writes"),
    (b'{"\xff": 1}', "not what safetensors writes"),
    (b"[" * 200_000, "not what safetensors writes"),
]


@pytest.mark.parametrize(("header", "sentence"), HEADERS, ids=range(len(HEADERS)))
def test_a_header_that_contradicts_itself_is_refused(tmp_path: Path, header: Any, sentence: str) -> None:
    path = write_file(tmp_path / WEIGHTS, header, b"12345678")
    with pytest.raises(IntegrityError, match=sentence) as raised:
        SafetensorsFile(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has 0 bytes, too few"),
        (b"1234567", "has 7 bytes, too few"),
        ((100_000_001).to_bytes(8, "little") + b"{}", "100000001 bytes; safetensors allows 100000000"),
        ((100).to_bytes(8, "little") + b"{}", "header of 100 bytes, and the file has only 10"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_a_file_without_a_whole_header_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(IntegrityError, match=sentence):
        SafetensorsFile(tmp_path / WEIGHTS)


def test_truncation_is_found_wherever_it_happens(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "c", {"a": f32(numbers(3)), "b": bf16(numbers(5))})
    whole = (folder / WEIGHTS).read_bytes()
    for length in range(len(whole)):
        (folder / WEIGHTS).write_bytes(whole[:length])
        with pytest.raises(IntegrityError, match=WEIGHTS):
            Checkpoint(folder)


def test_a_file_that_shrinks_after_it_was_opened(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "c", {"a": f32(numbers(3000))})
    checkpoint = Checkpoint(folder)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:5000])
    with pytest.raises(IntegrityError, match=r"shorter now.*'a'"):
        checkpoint.read("a")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_any_changed_byte_gives_a_sentence_or_a_file_that_is_consistent(
    tmp_path: Path, position: int, flip: int
) -> None:
    tensors = {"a": f32(numbers(3)), "b": bf16(numbers(5)), "c": ("F16", (2,), b"1234")}
    path = write_safetensors(tmp_path / WEIGHTS, tensors)
    content = bytearray(path.read_bytes())
    content[position % len(content)] ^= flip
    path.write_bytes(content)
    try:
        opened = SafetensorsFile(path)
        for name in opened.tensors:
            opened.read(name)
    except CompassError as error:
        assert str(path) in str(error)  # noqa: PT017


def _made(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


FOLDERS: list[tuple[dict[str, str], type[CompassError], str]] = [
    ({}, UsageError, "has no weights: it is empty"),
    ({"config__json": "{}"}, UsageError, "no safetensors file is in it"),
    *[
        ({"config__json": "{}", f"pytorch_model__{kind}": ""}, UsageError, f"model.{kind}' is a pickle.*runs.*code.*Convert")
        for kind in ("bin", "pt", "pth", "ckpt", "pkl")
    ],
    ({"model__gguf": ""}, UsageError, "model.gguf' is a GGUF file"),
    ({"model__onnx": ""}, UsageError, "model.onnx' is an ONNX graph"),
    ({"config__json": "{}", "adapter_model__safetensors": ""}, UsageError, "an adapter.*Merge"),
    ({"model-00001-of-00003__safetensors": "", "model-00003-of-00003__safetensors": ""}, IntegrityError,
     "one of 3 shards, and model-00002-of-00003.safetensors is not there"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "kind", "sentence"), FOLDERS, ids=range(len(FOLDERS)))
def test_a_folder_without_usable_weights(
    tmp_path: Path, files: dict[str, str], kind: type[CompassError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        Checkpoint(_made(tmp_path / "c", **files))


@pytest.mark.parametrize(
    ("config", "kind", "sentence"),
    [
        (None, UsageError, "has no config.json"),
        ("[1]", UsageError, "should hold a JSON object, and it holds a list"),
        ("{", IntegrityError, "config.json' is not valid JSON"),
        ("[" * 100_000, IntegrityError, "config.json' is not valid JSON"),
    ],
)
def test_a_config_that_says_nothing(
    tmp_path: Path, config: str | None, kind: type[CompassError], sentence: str
) -> None:
    folder = write_checkpoint(tmp_path / "c", {"a": f32(1.0)})
    (folder / "config.json").unlink()
    if config is not None:
        (folder / "config.json").write_text(config)
    with pytest.raises(kind, match=sentence):
        Checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("model.safetensors", "one file of a checkpoint"),
        ("config.json", "one file of a checkpoint"),
        ("model.pt", "is a pickle"),
        ("model.gguf", "is a GGUF file"),
        ("model.onnx", "is an ONNX graph"),
        ("notes.txt", "is a file. A checkpoint is a folder"),
    ],
)
def test_a_file_in_place_of_the_folder(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match=sentence):
        Checkpoint(tmp_path / name)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no folder '.*nowhere'"):
        Checkpoint(tmp_path / "nowhere")
    with pytest.raises(CompassError):
        Checkpoint(tmp_path / ("x" * 5000))


ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.mark.parametrize(
    ("weight_map", "sentence"),
    [
        ({"a": ONE, "b": "model-00003-of-00003.safetensors"}, "names the shard model-00003.*not there"),
        ({"a": ONE, "b": TWO, "c": TWO}, "'c' is in model-00002.*it is not"),
        ({"a": TWO, "b": TWO}, "'a' is in model-00002.*it is not"),
        ({"a": TWO, "b": ONE}, "'a' is in model-00002.*it is not"),
        ({"a": "../" + ONE}, "must be a safetensors file beside it"),
        ({"a": "/etc/passwd"}, "must be a safetensors file beside it"),
        ({"a": "model.bin"}, "must be a safetensors file beside it"),
        ({"a": 3}, "must be a safetensors file beside it"),
        ({}, "should have a weight_map"),
        ([1], "should have a weight_map"),
    ],
)
def test_an_index_that_does_not_fit_its_shards(tmp_path: Path, weight_map: Any, sentence: str) -> None:
    folder = write_shards(tmp_path / "c", {ONE: {"a": f32(1.0)}, TWO: {"b": f32(1.0)}})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(IntegrityError, match=sentence):
        Checkpoint(folder)


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "c", {ONE: {"a": f32(1.0), "b": f32(2.0)}, TWO: {"b": f32(1.0)}})
    with pytest.raises(IntegrityError, match=f"'b' is in {ONE} and in {TWO}"):
        Checkpoint(folder)


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "c", {ONE: {"a": f32(1.0)}, TWO: {"b": f32(numbers(9))}})
    (folder / TWO).write_bytes((folder / TWO).read_bytes()[:-1])
    with pytest.raises(IntegrityError, match=f"{TWO}' is truncated: the tensor 'b'"):
        Checkpoint(folder)


def test_weights_twice_are_not_chosen_between(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "c", {ONE: {"a": f32(1.0)}})
    shutil.copy(folder / ONE, folder / WEIGHTS)
    with pytest.raises(UsageError, match="has weights twice"):
        Checkpoint(folder)


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "c", {"a": f32(1.0)})
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).mkdir()
    with pytest.raises(CompassError, match=r"model.safetensors' cannot be read"):
        Checkpoint(folder)


def test_the_samples_cover_their_buffer() -> None:
    header = header_of({"a": f32(numbers(2)), "b": bf16(numbers(2))})
    assert [header[name]["data_offsets"] for name in "ab"] == [[0, 8], [8, 12]]
