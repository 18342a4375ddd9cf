"""A checkpoint becomes a model: every family, dialect and precision, through the command that a person uses. No torch."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_samples import FAMILIES, KINDS, Tensors, config_of, values_of, write_sample, write_weights
from exported_samples import Samples, distance, noise

from compass_edge.cli.main import main
from compass_edge.engines.file_record import MANIFEST, record_files
from compass_edge.engines.manifest import read_manifest, verify
from compass_edge.engines.onnx import self_test
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.export import matrix
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.model import export_model
from compass_edge.export.recipe import PRECISIONS, Recipe
from compass_edge.models import Clip, Image, Question
from compass_edge.prms.robometer import RoboMeter
from compass_edge.roles.schema import flag, record

SMALL = Options(context=1024, batch=1, prefixes=0)
SCHEMA = record(seen=flag())
# How far a precision may take the model's numbers from those of fp32, in spreads of theirs (root mean square). Rounding a
# weight to n bits is off by 2^-n of a row's largest; these small models have no trained tolerance for it.
FAR = {
    "fp32": 1e-5,
    "fp16": 5e-3,
    "int8": 0.1,
    "int8-block": 0.1,
    "int8-block-fp16": 0.1,
    "int4": 0.5,
    "int4-fp16": 0.5,
    "fp8": 0.5,
}
EVERYWHERE = pytest.mark.parametrize("dialect", ["ort", "standard"])


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def answer(folder: Path) -> str:
    if read_manifest(folder).kind == "prm":
        score = RoboMeter(folder, SMALL, slots=2).score([Clip("open the box", (Image("a", noise(0)),))])[0]
        return f"{score:.6f}"
    return OnnxVlm(folder, SMALL).ask(
        [Question((Image("a", noise(0)), "Is it there?"), SCHEMA)], lambda index, piece: None, lambda: False
    )[0]


# Every family, dialect, precision


@EVERYWHERE
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_made_listed_verified_and_answers(
    kind: str, dialect: str, samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("COMPASS_EDGE_MODELS", str(tmp_path))
    checkpoint = samples.checkpoint(kind)
    samples.model(kind, dialect=dialect, decoder="fp32")  # can be run here at all
    capsys.readouterr()
    assert (
        main(["models", "export", str(checkpoint), "--name", "tiny", "--dialect", dialect, "--precision", "int8"]) == 0
    )
    assert capsys.readouterr().out.endswith("Next: compass-edge models verify tiny\n")
    assert main(["models", "verify", "tiny", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["models"][0]
    assert verdict["self_test"]["worst"] == pytest.approx(0, abs=1e-4)
    assert main(["models", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["unfinished"] == []
    (row,) = listed["models"]
    assert (row["name"], row["sound"], row["dialect"]) == ("tiny", True, dialect)
    assert row["kind"] == ("prm" if kind == "robometer" else "vlm")
    assert row["family"] == ("qwen3-vl" if kind == "robometer" else kind)
    assert row["precision"] == {"vision": "fp32", "embedding": "fp16", "decoder": "int8"}
    said = answer(tmp_path / "tiny")
    if kind == "robometer":
        assert 0 <= float(said) <= 1
    else:
        assert json.loads(said) in ({"seen": True}, {"seen": False})


@pytest.mark.parametrize(
    ("dialect", "precision"),
    [
        (dialect, precision)
        for dialect in ("ort", "standard")
        for precision in PRECISIONS
        if precision != "fp32" and (dialect, precision) != ("ort", "fp8")
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_precision_is_near_the_floats(samples: Samples, kind: str, dialect: str, precision: str) -> None:
    exact = samples.manifest(kind, dialect=dialect).golden["values"]
    vision = "fp16" if precision == "fp8" else precision
    found = samples.manifest(kind, dialect=dialect, decoder=precision, vision=vision).golden["values"]
    for name, values in exact.items():
        far = distance(found[name], values)
        assert far <= FAR[precision], name
        if name == "features" and precision != "fp16":  # it was rounded at all
            assert far > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_both_dialects_say_the_same(samples: Samples, kind: str) -> None:
    ours, plain = (samples.manifest(kind, dialect=dialect).golden for dialect in ("ort", "standard"))
    assert ours["ids"] == plain["ids"]
    for name, values in ours["values"].items():
        assert distance(plain["values"][name], values) < 1e-4


@pytest.mark.parametrize("embedding", ["fp16", "int8"])
def test_the_token_table_alone_can_be_rounded(samples: Samples, embedding: str) -> None:
    exact, rounded = samples.manifest("qwen3-vl"), samples.manifest("qwen3-vl", embedding=embedding)
    assert rounded.precision == {"vision": "fp32", "embedding": embedding, "decoder": "fp32"}
    assert rounded.files["decoder.onnx.data"] == exact.files["decoder.onnx.data"]
    assert rounded.files["vision.onnx.data"] == exact.files["vision.onnx.data"]
    size = exact.files["embedding.onnx.data"].bytes
    assert rounded.files["embedding.onnx.data"].bytes < (0.55 if embedding == "fp16" else 0.4) * size
    for name, values in exact.golden["values"].items():
        assert distance(rounded.golden["values"][name], values) < (1e-3 if embedding == "fp16" else 0.05)


def test_each_part_has_its_own_precision(samples: Samples) -> None:
    exact = samples.manifest("qwen3-vl")
    mixed = samples.manifest("qwen3-vl", vision="int8", decoder="int4", embedding="fp16")
    assert mixed.precision == {"vision": "int8", "embedding": "fp16", "decoder": "int4"}
    size = {
        part: mixed.files[f"{part}.onnx.data"].bytes / exact.files[f"{part}.onnx.data"].bytes
        for part in mixed.precision
    }
    assert size["embedding"] == pytest.approx(0.5, abs=0.05)
    assert 0.2 < size["vision"] < 0.75  # pages of 4096 bytes, and patches and positions in floats
    vision_only = samples.manifest("qwen3-vl", vision="int8")
    assert vision_only.files["vision.onnx.data"] == mixed.files["vision.onnx.data"]


@pytest.mark.parametrize("block", [16, 64])
def test_blocks_of_another_size(samples: Samples, block: int) -> None:
    exact = samples.manifest("qwen3-vl").golden["values"]["logits"]
    wide = distance(samples.manifest("qwen3-vl", decoder="int4", block=block).golden["values"]["logits"], exact)
    assert 0.01 < wide < FAR["int4"]


# What the manifest tells


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_tells_everything(samples: Samples, kind: str) -> None:
    folder, checkpoint = samples.model(kind), samples.checkpoint(kind)
    manifest, config = verify(folder), config_of(kind)
    assert manifest.files == record_files(folder)  # sha256 and size of each
    assert {"vision.onnx", "embedding.onnx", "decoder.onnx", "tokenizer/tokenizer.json"} <= manifest.files.keys()
    assert manifest.source == {"name": checkpoint.name, "sha256": Checkpoint(checkpoint).digest()}
    tower, decoder = manifest.architecture["tower"], manifest.architecture["decoder"]
    assert decoder["hidden"] == tower["out"] == config["text_config"]["hidden_size"]
    assert decoder["theta"] == config["text_config"]["rope_parameters"]["rope_theta"]
    assert manifest.architecture["tokens"]["image"] == config["image_token_id"]
    assert manifest.preprocessing["patch"] == config["vision_config"]["patch_size"]
    assert len(manifest.preprocessing["mean"]) == len(manifest.preprocessing["std"]) == 3
    assert manifest.tokenizer == {"folder": "tokenizer", "size": 273}
    assert manifest.golden["ids"].count(config["image_token_id"]) >= 4
    given = {"progress", "success"} if kind == "robometer" else {"logits", "next_logits"}
    assert manifest.golden["values"].keys() == {"features"} | given
    assert set(manifest.golden["tolerance"].values()) == {1e-3}
    text = (folder / MANIFEST).read_text()
    assert str(checkpoint.parent) not in text  # nobody's paths


def test_robometers_tokens_are_added_where_the_tokenizer_has_none(tmp_path: Path) -> None:
    from tokenizer_samples import QWEN, write_byte_tokenizer

    folder = write_sample("robometer", tmp_path / "c")
    write_byte_tokenizer(folder, QWEN)
    manifest = export_model(folder, tmp_path / "m", Recipe(decoder="fp32"), name="m")
    assert manifest.tokenizer["size"] == 273
    assert manifest.architecture["tokens"]["progress"] == 272  # behind the others
    assert float(answer(tmp_path / "m")) <= 1


def test_preprocessing_follows_the_checkpoints_own_file(samples: Samples, tmp_path: Path) -> None:
    folder = write_sample("qwen3-vl", tmp_path / "c")
    about = {"size": {"shortest_edge": 4096, "longest_edge": 262144}, "image_mean": [0.1, 0.2, 0.3], "patch_size": 16}
    (folder / "preprocessor_config.json").write_text(json.dumps(about))
    manifest = export_model(folder, tmp_path / "m", Recipe(decoder="fp32", embedding="fp32"), name="m")
    usual = samples.manifest("qwen3-vl").preprocessing
    changed = {"min_pixels": 4096, "max_pixels": 262144, "mean": [0.1, 0.2, 0.3]}
    assert manifest.preprocessing == {**usual, **changed}
    assert samples.manifest("robometer").preprocessing["min_pixels"] == 4 * 32 * 32  # as its own code resizes


def test_pictures_that_are_made_large_still_have_a_golden(tmp_path: Path) -> None:
    folder = write_sample("qwen3-vl", tmp_path / "c")
    (folder / "preprocessor_config.json").write_text(json.dumps({"min_pixels": 1_500_000}))
    export_model(folder, tmp_path / "m", Recipe(decoder="fp32"), name="m")
    assert main(["models", "verify", str(tmp_path / "m")]) == 0


# Where checkpoints differ


def rewritten(folder: Path, kind: str, change: Callable[[Tensors], Tensors]) -> Path:
    write_sample(kind, folder)
    write_weights(folder, change(values_of(kind, config_of(kind))))
    return folder


@pytest.mark.parametrize("kind", FAMILIES)
def test_shards_and_older_names_make_the_same_model(samples: Samples, kind: str, tmp_path: Path) -> None:
    """The tower was `visual.` and the text model `model.` in the first releases."""

    def renamed(values: Tensors) -> Tensors:
        names = (name.replace("model.visual.", "visual.").replace("language_model.", "") for name in values)
        return dict(zip(names, values.values(), strict=True))

    recipe = Recipe(decoder="fp32", embedding="fp32")
    golden = samples.manifest(kind).golden
    old = export_model(rewritten(tmp_path / "old", kind, renamed), tmp_path / "a", recipe, name="a")
    assert old.golden == golden
    parts = export_model(write_sample(kind, tmp_path / "parts", shards=3), tmp_path / "b", recipe, name="b")
    assert parts.golden == golden
    same = samples.manifest(kind)
    assert {name: record for name, record in parts.files.items() if "onnx" in name} == {
        name: record for name, record in same.files.items() if "onnx" in name
    }
    assert parts.source["sha256"] != same.source["sha256"]


def test_a_head_that_shares_the_embedding(tmp_path: Path) -> None:
    def shared(values: Tensors) -> Tensors:
        return {**values, "lm_head.weight": values["model.language_model.embed_tokens.weight"]}

    def left_out(values: Tensors) -> Tensors:
        return {name: value for name, value in values.items() if name != "lm_head.weight"}

    twice, once = rewritten(tmp_path / "twice", "qwen3-vl", shared), rewritten(tmp_path / "once", "qwen3-vl", left_out)
    config = {**config_of("qwen3-vl"), "tie_word_embeddings": True}
    (once / "config.json").write_text(json.dumps(config))
    goldens = [export_model(path, tmp_path / path.name[:1], Recipe(), name="m").golden for path in (twice, once)]
    assert goldens[0] == goldens[1]


# What an export costs


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_golden_of_a_large_model_is_made_from_mapped_files(
    kind: str, precision: str, samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a runtime that lays its weights out for speed gives the same answer."""
    usual = samples.manifest(kind, decoder=precision).golden
    opened: list[bool] = []
    session = self_test.Body.__init__

    def watched(body: Any, folder: Path, manifest: Any, options: Options, *more: Any) -> None:
        opened.append(options.packed)
        session(body, folder, manifest, options, *more)

    monkeypatch.setattr(self_test, "_PACKED", 0)
    monkeypatch.setattr(self_test.Body, "__init__", watched)
    recipe = Recipe(decoder=precision, embedding="fp32")
    made = export_model(samples.checkpoint(kind), tmp_path / "large", recipe, name="large")
    assert opened == [False]
    assert made.golden["tolerance"] == {name: 2 * allowed for name, allowed in usual["tolerance"].items()}
    assert self_test.self_test(tmp_path / "large").passed
    assert opened == [False, True]


@pytest.mark.parametrize(("dialect", "precision"), [("ort", "fp32"), ("ort", "int4"), ("standard", "int8")])
def test_memory_does_not_grow_with_the_layers(tmp_path: Path, dialect: str, precision: str) -> None:
    """Ten layers instead of two: one matrix is in memory at a time, so what is needed stays what it was."""

    def peak(layers: int) -> tuple[int, int]:
        def grown(config: dict[str, Any]) -> None:
            config["text_config"] |= {
                "num_hidden_layers": layers,
                "hidden_size": 256,
                "intermediate_size": 768,
                "head_dim": 64,
            }
            config["text_config"]["rope_parameters"] |= {"mrope_section": [12, 10, 10]}
            config["vision_config"] |= {"out_hidden_size": 256}

        about = config_of("robometer")
        grown(about)
        folder = write_sample("robometer", tmp_path / f"{layers}", config=grown)
        write_weights(folder, values_of("robometer", about))
        tracemalloc.start()
        try:
            export_model(
                folder, tmp_path / f"m{layers}", Recipe(dialect=dialect, decoder=precision, positions=2048), name="m"
            )
            return tracemalloc.get_traced_memory()[1], (folder / "model.safetensors").stat().st_size
        finally:
            tracemalloc.stop()

    (low, less), (high, more) = peak(2), peak(10)
    assert more - less > 20 << 20
    assert high - low < 2 << 20


def test_a_table_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedding is the largest tensor: no read of it, and nothing that is made of one, is larger than a piece."""
    piece, sizes = 16 << 10, dict[str, list[int]]()
    monkeypatch.setattr(matrix, "_PIECE", piece)
    read = Checkpoint.read

    def counted(self: Checkpoint, name: str, *arguments: Any, **options: Any) -> Any:
        values = read(self, name, *arguments, **options)
        sizes.setdefault(name, []).append(values.nbytes)
        return values

    monkeypatch.setattr(Checkpoint, "read", counted)
    folder = write_sample("qwen3-vl", tmp_path / "c")
    export_model(folder, tmp_path / "m", Recipe(decoder="int8", vision="int8"), name="m")
    for name, found in sizes.items():
        row = 4 * int(np.prod(Checkpoint(folder).shape(name)[1:]))
        assert max(found) <= max(piece, row), name
    assert len(sizes["model.language_model.embed_tokens.weight"]) == 8  # 512 rows of 256 bytes
    assert len(sizes["lm_head.weight"]) == 8
