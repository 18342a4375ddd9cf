"""Real engines without a GPU: what TensorRT-RTX takes, what is refused and how, and what a second build costs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from checkpoint_samples import FAMILIES, write_sample
from exported_samples import Samples
from onnx import TensorProto, helper, numpy_helper
from tensorrt_samples import FP8, FP16, INT4, LIMITS, REAL, VERSION, tensors_of

from compass_edge.engines.engine_record import PARTS
from compass_edge.engines.manifest import inspect, read_manifest
from compass_edge.engines.tensorrt.kept import cache_folder
from compass_edge.engines.tensorrt.library import Library, open_library
from compass_edge.engines.tensorrt.target import TARGETS, target_of
from compass_edge.errors import EnvironmentFault, IntegrityError, UsageError
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe
from compass_edge.export.tensorrt import build as building
from compass_edge.export.tensorrt import network
from compass_edge.export.tensorrt.build import Built, build_engines
from compass_edge.export.tensorrt.cache import Cache, Key
from compass_edge.export.tensorrt.network import Network
from compass_edge.export.tensorrt.profile import Limits, profiles

pytestmark = pytest.mark.tensorrt
Build = Callable[..., Built]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def model(samples: Samples, tmp_path: Path) -> Path:
    return samples.copy(tmp_path / "meter", "robometer", **FP16)


# What is built


@REAL
@pytest.mark.parametrize(
    ("target", "recipe"),
    [
        *((target, recipe) for target in ("sm_86", "sm_89", "sm_120") for recipe in (FP16, INT4)),
        ("sm_89", FP8),
        ("sm_120", FP8),
    ],
    ids=lambda one: one if isinstance(one, str) else one["decoder"],
)
def test_a_robometer_is_built_for_the_cards(
    samples: Samples, cache: Cache, tmp_path: Path, target: str, recipe: dict[str, str]
) -> None:
    folder = samples.copy(tmp_path / "meter", "robometer", **recipe)
    built = build_engines(folder, target_of(target), LIMITS, cache=cache)
    manifest = inspect(folder)
    assert manifest == built.manifest
    assert manifest.engines == built.engines
    assert {record.part for record in built.engines.values()} == set(PARTS)
    for name, record in built.engines.items():
        assert (record.target, record.flavour, record.version) == (target, "tensorrt-rtx", VERSION)
        assert record.precision == recipe["vision" if record.part == "vision" else "decoder"]
        assert (folder / name).stat().st_size == record.bytes > 100_000
        assert record.tensors == tensors_of(folder / f"{record.part}.onnx")
    assert built.tested is None  # no such card is here


@REAL
@pytest.mark.parametrize("target", ["sm_80", "sm_121"])
def test_the_other_cards_have_engines_too(model: Path, cache: Cache, target: str) -> None:
    assert len(build_engines(model, target_of(target), LIMITS, cache=cache).engines) == 2


@REAL
def test_engines_for_several_cards_live_side_by_side_and_a_new_build_replaces_its_own(
    model: Path, cache: Cache
) -> None:
    first = build_engines(model, target_of("sm_86"), LIMITS, cache=cache)
    build_engines(model, target_of("sm_89"), LIMITS, cache=cache)
    small = Limits(frames=2, batch=1, width=128, height=96)
    again = build_engines(model, target_of("sm_86"), small, cache=cache)
    manifest = inspect(model)
    assert sorted(record.target for record in manifest.engines.values()) == ["sm_86", "sm_86", "sm_89", "sm_89"]
    assert not first.engines.keys() & again.engines.keys()
    there = {path.relative_to(model).as_posix() for path in (model / "engines").rglob("*") if path.is_file()}
    assert there == set(manifest.engines)


@REAL
@pytest.mark.parametrize("precision", ["fp16", "fp32", "int4-fp16", "int8-block-fp16", "int8", "fp8"])
@pytest.mark.parametrize("kind", [*FAMILIES, "robometer"])
def test_the_parser_takes_every_tower_and_every_decoder(samples: Samples, kind: str, precision: str) -> None:
    vision = precision if precision in ("fp16", "fp32", "int8") else "fp16"
    folder = samples.model(kind, dialect="standard", vision=vision, decoder=precision)
    library = open_library("tensorrt-rtx")
    for part in ("vision", "embedding", "decoder"):
        Network(library, folder / f"{part}.onnx")


@REAL
@pytest.mark.parametrize("kind", FAMILIES)
def test_every_familys_tower_becomes_an_engine(samples: Samples, kind: str) -> None:
    folder = samples.model(kind, dialect="standard", vision="fp16", decoder="fp16")
    towers = Network(open_library("tensorrt-rtx"), folder / "vision.onnx")
    profile = {"F": (1, 2, 4), "P": (4, 64, 64), "M": (1, 16, 16)}
    engine, timings = towers.build(target_of("sm_120"), "vision", profile)
    assert len(engine) > 100_000
    assert timings == b""


@REAL
def test_weights_of_four_bits_stay_so(tmp_path: Path) -> None:
    """TensorRT could also have multiplied them out when it built: what the engines save is what the files do."""

    def wider(config: dict[str, Any]) -> None:
        config["text_config"] |= {"hidden_size": 256, "intermediate_size": 2048}
        config["vision_config"] |= {"out_hidden_size": 256}

    checkpoint = write_sample("robometer", tmp_path / "checkpoint", shape=wider)
    engines, weights = {}, {}
    for precision in ("fp16", "int4-fp16"):
        folder = tmp_path / precision
        recipe = Recipe(dialect="standard", vision="fp16", decoder=precision)
        weights[precision] = export_model(checkpoint, folder, recipe, name=precision).files["decoder.onnx.data"].bytes
        built = build_engines(folder, target_of("sm_86"), LIMITS, cache=Cache(tmp_path / "cache")).engines.values()
        engines[precision] = next(record.bytes for record in built if record.part == "decoder")
    saved = weights["fp16"] - weights["int4-fp16"]
    assert saved > 4_000_000
    assert engines["fp16"] - engines["int4-fp16"] > 0.8 * saved


@REAL
def test_two_builds_at_once_list_the_engines_of_both(
    model: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    unchanged = building._unchanged

    def other_first(folder: Path, manifest: Any) -> Any:
        monkeypatch.setattr(building, "_unchanged", unchanged)
        build_engines(folder, target_of("sm_89"), LIMITS, cache=cache)
        return unchanged(folder, manifest)

    monkeypatch.setattr(building, "_unchanged", other_first)
    build_engines(model, target_of("sm_86"), LIMITS, cache=cache)
    assert {record.target for record in inspect(model).engines.values()} == {"sm_86", "sm_89"}


# The cache


@REAL
def test_a_second_build_reads_the_cache(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "cache")
    first = build_engines(model, target_of("sm_86"), LIMITS, cache=cache)
    with monkeypatch.context() as during:
        during.setattr(network.Network, "build", lambda *_, **__: pytest.fail("built again"))
        second = build_engines(model, target_of("sm_86"), LIMITS, cache=cache)
    assert (first.cached, second.cached) == ((), PARTS)
    assert second.manifest == first.manifest
    for path in cache.folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    third = build_engines(model, target_of("sm_86"), LIMITS, cache=cache)
    assert third.cached == ()  # what was cut short counts as absent
    assert inspect(model) == third.manifest


def test_everything_that_an_engine_depends_on_is_in_the_key() -> None:
    key = Key("a" * 64, "sm_86", "tensorrt-rtx", VERSION, "fp16", {"F": (1, 4, 8)})
    changed = [
        Key("b" * 64, "sm_86", "tensorrt-rtx", VERSION, "fp16", {"F": (1, 4, 8)}),
        Key("a" * 64, "sm_89", "tensorrt-rtx", VERSION, "fp16", {"F": (1, 4, 8)}),
        Key("a" * 64, "sm_86", "tensorrt", VERSION, "fp16", {"F": (1, 4, 8)}),
        Key("a" * 64, "sm_86", "tensorrt-rtx", "1.7.2", "fp16", {"F": (1, 4, 8)}),
        Key("a" * 64, "sm_86", "tensorrt-rtx", VERSION, "fp32", {"F": (1, 4, 8)}),
        Key("a" * 64, "sm_86", "tensorrt-rtx", VERSION, "fp16", {"F": (1, 4, 9)}),
    ]
    assert len({one.digest for one in (key, *changed)}) == 7


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_ENGINE_CACHE", "/a/b")
    assert cache_folder() == Path("/a/b")
    monkeypatch.delenv("COMPASS_EDGE_ENGINE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert cache_folder() == Path("/c/compass-edge/tensorrt")


# What is refused


@REAL
def test_a_node_that_tensorrt_has_not_is_named(tmp_path: Path) -> None:
    node = helper.make_node("NonZero", ["x"], ["y"], name="where_it_is")
    ends = [
        helper.make_tensor_value_info(name, kind, [2, "K"])
        for name, kind in (("x", TensorProto.FLOAT), ("y", TensorProto.INT64))
    ]
    graph = helper.make_graph([node], "bad", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "v.onnx")
    with pytest.raises(UsageError, match=r"node 'where_it_is', an operator NonZero: .*--dialect standard"):
        Network(open_library("tensorrt-rtx"), tmp_path / "v.onnx")


@REAL
@pytest.mark.parametrize("asked", ["fp16", None])
def test_the_precision_may_be_asked_for_as_it_is(model: Path, cache: Cache, asked: str | None) -> None:
    build_engines(model, target_of("sm_86"), LIMITS, precision=asked, cache=cache)


@pytest.mark.parametrize(
    ("target", "asked", "said"),
    [
        ("sm_86", "fp8", r"sm_86 .* has no FP8 in its tensor cores\. Export 'robometer-0' in int4-fp16"),
        ("sm_89", "fp8", r"fp8 was asked for, and the decoder .* is fp16\. Export .*--precision fp8`"),
        ("sm_86", "int4", r"int4 was asked for, and the decoder .* is fp16\. Export .*--precision int4`"),
    ],
)
def test_another_precision_is_refused(model: Path, target: str, asked: str, said: str) -> None:
    before = (model / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match=said):
        build_engines(model, target_of(target), LIMITS, precision=asked)
    assert (model / "manifest.json").read_bytes() == before


def test_a_model_in_fp8_is_refused_for_a_chip_without(samples: Samples, tmp_path: Path) -> None:
    folder = samples.copy(tmp_path / "meter", "robometer", **FP8)
    with pytest.raises(UsageError, match=r"sm_86 .* has no FP8"):
        build_engines(folder, target_of("sm_86"), LIMITS)


def test_fp8_is_rounded_where_the_weights_bound_what_comes(samples: Samples) -> None:
    """Queries, keys and values, the output of attention, gate and up: four products of a layer, and nothing can be cut off."""
    graph = onnx.load(samples.model("robometer", **FP8) / "decoder.onnx", load_external_data=False).graph
    rounded = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    layers = {name.split(".")[1] for name in (one.name for one in graph.initializer) if name.startswith("layers.")}
    assert len(rounded) == 4 * len(layers)
    scales = {one.name: numpy_helper.to_array(one) for one in graph.initializer if not one.external_data}
    assert all(0 < float(scales[node.input[1]]) * 448 < 65504 for node in rounded)


def test_graphs_of_onnx_runtime_and_language_models_are_refused(samples: Samples) -> None:
    with pytest.raises(UsageError, match=r"dialect standard, and .* \(ort\)\. Export it again: `.*--dialect standard"):
        build_engines(samples.model("robometer", dialect="ort"), target_of("sm_86"))
    with pytest.raises(UsageError, match=r"Edge-LLM"):
        build_engines(samples.model("qwen3-vl", dialect="standard"), target_of("sm_86"))


@pytest.mark.parametrize("target", ["sm_87", "sm_110"])
def test_a_jetson_builds_its_own(model: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(EnvironmentFault, match=r"tensorrt is needed here.*JetPack 7.*on the device itself"):
        build_engines(model, target_of(target), LIMITS)


@pytest.mark.parametrize(("here", "said"), [(None, "there is no GPU here"), ("sm_86", "the GPU here is sm_86")])
def test_a_jetsons_engines_are_not_built_elsewhere(
    model: Path, monkeypatch: pytest.MonkeyPatch, here: str | None, said: str
) -> None:
    monkeypatch.setattr(building, "open_library", lambda flavour: Library(flavour, "10.16", None))
    monkeypatch.setattr(building, "target_here", lambda: here)
    with pytest.raises(EnvironmentFault, match=rf"sm_87 \(Jetson Orin.*on the device itself, and {said}"):
        build_engines(model, target_of("sm_87"), LIMITS)


@REAL
@pytest.mark.filterwarnings("ignore:.*Timing cache:DeprecationWarning")
def test_the_way_of_jetpack_over_the_same_api(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorRT-RTX in the place of JetPack's TensorRT: no chip is named, and timings are kept from build to build."""
    stand_in, given = open_library("tensorrt-rtx").api, []
    monkeypatch.setattr(building, "open_library", lambda flavour: Library(flavour, "10.16.0.72", stand_in))
    monkeypatch.setattr(building, "target_here", lambda: "sm_87")
    monkeypatch.setattr(building, "_tested", lambda *_: None)
    build = network.Network.build

    def noted(self: Network, *arguments: Any, **settings: Any) -> Any:
        given.append(settings["timings"])
        return build(self, *arguments, **settings)

    monkeypatch.setattr(network.Network, "build", noted)
    built = build_engines(model, target_of("sm_87"), LIMITS, cache=Cache(tmp_path / "cache"))
    assert {(record.flavour, record.version) for record in built.engines.values()} == {("tensorrt", "10.16.0.72")}
    assert given[0] == b""
    assert given[1] != b""
    assert (tmp_path / "cache" / "tensorrt-10.16.0.72-sm_87.timings").read_bytes()


def test_without_tensorrt_rtx_the_cure_is_said(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorrt_rtx", "tensorrt_rtx_bindings"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EnvironmentFault, match=r"pip install 'compass-edge\[tensorrt-rtx\]'"):
        build_engines(model, target_of("sm_86"), LIMITS)


@REAL
def test_a_damaged_graph_is_not_built(model: Path) -> None:
    path = model / "vision.onnx.data"
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match=r"its content has changed"):
        build_engines(model, target_of("sm_86"), LIMITS)


@REAL
def test_a_build_that_is_stopped_leaves_the_model_as_it_was(model: Path, tmp_path: Path) -> None:
    cache, steps = Cache(tmp_path / "cache"), []
    before = (model / "manifest.json").read_bytes()

    def step(phase: str, done: int, total: int) -> None:
        assert 0 < done <= total
        steps.append(phase)

    with pytest.raises(KeyboardInterrupt):  # in the middle of the second part
        build_engines(
            model, target_of("sm_86"), LIMITS, cache=cache, on_step=step,
            cancelled=lambda: any(phase.startswith("decoder") for phase in steps),
        )  # fmt: skip
    assert (model / "manifest.json").read_bytes() == before
    assert not (model / "engines").exists()
    assert any(phase.startswith("vision: ") for phase in steps)
    assert build_engines(model, target_of("sm_86"), LIMITS, cache=cache).cached == ("vision",)


# Sizes


@pytest.mark.parametrize("name", ["sm_86", "sm86", "86", "8.6", "SM_86"])
def test_a_target_by_any_of_its_names(name: str) -> None:
    assert target_of(name) is TARGETS["sm_86"]


def test_an_unknown_target_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"sm_87 \(Jetson Orin.*'sm_90' came"):
        target_of("sm_90")


def test_profiles_by_hand(model: Path) -> None:
    """640 x 480 in patches of 16 is 40 x 30; four of them are a token."""
    made = profiles(read_manifest(model), Limits())
    assert made["vision"] == {"F": (1, 8, 8), "P": (4, 1200, 1200), "M": (1, 300, 300)}
    assert made["decoder"]["B"] == (1, 1, 1)
    assert made["decoder"]["S"] == (1, 8 * 308 + 128, 8 * 316 + 384)
    assert made["decoder"]["N"] == (1, 1, 64)


def test_the_question_of_the_manifest_always_fits(model: Path) -> None:
    manifest = read_manifest(model)
    made = profiles(manifest, Limits(frames=1, width=64, height=64, words=1))
    assert made["vision"]["P"][2] == 48  # 128 x 96
    assert made["vision"]["F"][2] == 2
    assert made["decoder"]["S"][2] >= len(manifest.golden["ids"])


def test_more_than_the_export_has_positions_for_is_refused(model: Path) -> None:
    with pytest.raises(UsageError, match=r"exported for 32768.*--positions"):
        profiles(read_manifest(model), Limits(frames=64, width=1920, height=1080))
    with pytest.raises(UsageError, match=r"frames must be a whole number from 1 to 64, and 0 came"):
        Limits(frames=0)
