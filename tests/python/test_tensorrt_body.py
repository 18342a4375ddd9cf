"""The body behind RoboMeter, on ONNX Runtime in the place of a GPU and on a stand-in of CUDA and TensorRT: same scores as the
ordinary engine, nothing allocated after it is open, and no answer from engines that compute something else.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_samples import Samples, picture
from fake_gpu import FakeCuda, FakeTensorRt, install
from tensorrt_samples import FP16, FP32, INT4, LIMITS, OPTIONS, REAL, VERSION, listed, stood_in

from compass_edge.engines.engine_record import PARTS
from compass_edge.engines.manifest import read_manifest, write_manifest
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.engines.tensorrt import body as tensorrt_body
from compass_edge.engines.tensorrt import cuda as cuda_module
from compass_edge.engines.tensorrt import gpu as gpu_module
from compass_edge.engines.tensorrt import load as loading
from compass_edge.engines.tensorrt.body import TensorRtBody
from compass_edge.engines.tensorrt.library import Library
from compass_edge.engines.tensorrt.stand_in import StandIn
from compass_edge.engines.tensorrt.target import target_of
from compass_edge.errors import CompassError, EnvironmentFault, IntegrityError, UsageError
from compass_edge.export.tensorrt import build as building
from compass_edge.export.tensorrt.build import build_engines
from compass_edge.export.tensorrt.cache import Cache
from compass_edge.models import Clip
from compass_edge.prms.robometer import RoboMeter

pytestmark = pytest.mark.tensorrt
RECIPES = pytest.mark.parametrize("recipe", [FP16, INT4, FP32], ids=["fp16", "int4", "fp32"])
SENTENCE = "put the red block into the box"
Open = Callable[..., tuple[TensorRtBody, StandIn]]


@pytest.fixture(autouse=True)
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPASS_EDGE_ENGINE_CACHE", str(tmp_path / "kept"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture
def model(samples: Samples, tmp_path: Path) -> Path:
    folder = samples.copy(tmp_path / "meter", "robometer", **FP16)
    listed(folder)
    return folder


def curves(folder: Path, body: TensorRtBody, count: int = 12, **settings: Any) -> list[Any]:
    frames = [picture(number) for number in range(count)]
    asked = [RoboMeter(folder, OPTIONS, **settings), RoboMeter(folder, OPTIONS, body=body, **settings)]
    return [meter.curve(SENTENCE, frames) for meter in asked]


def same(first: Any, second: Any) -> bool:
    return all(
        np.abs(getattr(first, name) - getattr(second, name)).max() < 1e-5 and np.isfinite(getattr(second, name)).all()
        for name in ("progress", "success")
    )


# On ONNX Runtime


@RECIPES
@pytest.mark.parametrize("settings", [{"slots": 4}, {"slots": 3, "rounding": "baseline"}], ids=["server", "baseline"])
def test_scores_are_those_of_the_ordinary_engine(
    samples: Samples, tmp_path: Path, recipe: dict[str, str], settings: dict[str, Any]
) -> None:
    folder = samples.copy(tmp_path / "meter", "robometer", **recipe)
    listed(folder)
    body, _ = stood_in(folder)
    ordinary, ours = curves(folder, body, **settings)
    assert same(ordinary, ours)
    assert np.ptp(ours.progress) > 1e-4  # scores that differ, or equal ones would say little


def test_a_whole_film_in_one_sequence(model: Path) -> None:
    body, _ = stood_in(model)
    assert same(*curves(model, body, 6, mode="whole"))


def test_clips_together_and_pictures_of_several_sizes(model: Path) -> None:
    body, _ = stood_in(model)
    clips = [
        Clip(SENTENCE, (picture(1), picture(2, (64, 96)), picture(3, (128, 96)))),
        Clip("another sentence, which is longer than the first one was", (picture(3, (128, 96)),)),
        Clip(SENTENCE, (picture(2, (64, 96)), picture(1))),
    ]
    meters = [RoboMeter(model, OPTIONS, slots=3), RoboMeter(model, OPTIONS, body=body, slots=3)]
    ordinary, ours = (meter.last(clips) for meter in meters)
    assert all(same(first, second) for first, second in zip(ordinary, ours, strict=True))
    assert meters[1].max_batch == 2
    assert meters[1].name != meters[0].name


def test_nothing_is_allocated_after_it_is_open(model: Path) -> None:
    body, device = stood_in(model)
    planned = body.plan.memory()
    assert device.allocations == len(planned.buffers) + len(planned.staging)
    curves(model, body, slots=4)
    assert device.allocations == len(planned.buffers) + len(planned.staging)


def test_a_frame_goes_through_the_tower_once_and_stays_on_the_device(model: Path) -> None:
    body, device = stood_in(model, replace(OPTIONS, vision_bytes=1 << 20))
    device.done.clear()
    curves(model, body, 12, slots=4)
    assert body.passes == 12
    counted = Counter(device.done)
    assert counted["upload vision.patches"] == 3  # four at a time
    assert counted["upload vision.cos"] == 1  # one size: where its patches lie is sent once
    assert not any(entry.startswith("download vision") for entry in device.done)
    assert counted["download features"] == 0
    curves(model, body, 12, slots=4)
    assert body.passes == 12


def test_with_too_few_slots_frames_are_encoded_again_and_scores_are_the_same(model: Path) -> None:
    body, _ = stood_in(model)
    assert body.plan.slots == 8
    assert same(*curves(model, body, 20, slots=4))
    assert body.passes > 20


def test_a_shape_that_comes_again_is_recorded_and_then_replayed(model: Path) -> None:
    body, device = stood_in(model)
    body._seen.clear()
    device.done.clear()
    meter = RoboMeter(model, OPTIONS, body=body, slots=2)
    for _ in range(4):
        meter.score([Clip(SENTENCE, (picture(1), picture(2)))])
    ran = [
        entry for entry in device.done if entry.endswith(" decoder") and not entry.startswith(("upload", "download"))
    ]
    assert ran == ["execute decoder", "record decoder", "replay decoder", "replay decoder"]


def test_recordings_are_bounded(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorrt_body, "_RECORDINGS", 2)
    body, device = stood_in(model)
    meter = RoboMeter(model, OPTIONS, body=body, slots=4)
    sizes = [(64, 64), (96, 64), (128, 64), (96, 96)]
    for number, size in enumerate([*sizes, *sizes, *sizes]):
        meter.score([Clip(SENTENCE, (picture(number, size),))] * 2)
    assert len(device._recorded) <= 2


def test_what_the_engine_was_not_built_for_is_refused(model: Path) -> None:
    body, _ = stood_in(model)
    meter = RoboMeter(model, OPTIONS, body=body, slots=2)
    with pytest.raises(UsageError, match=r"patches came.*48 at most"):
        meter.score([Clip(SENTENCE, (picture(1, (320, 320)),))])
    with pytest.raises(UsageError, match=r"tokens came"):
        meter.score([Clip("word " * 400, (picture(1),))])
    assert 0 < meter.score([Clip(SENTENCE, (picture(1),))])[0] < 1  # and goes on


def test_a_call_that_failed_leaves_no_frame_that_is_none(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body, device = stood_in(model)
    meter = RoboMeter(model, OPTIONS, body=body, slots=2)
    clips = [Clip(SENTENCE, (picture(1), picture(2)))]
    expected = meter.score(clips)
    body.forget()
    with monkeypatch.context() as during, pytest.raises(CompassError, match=r"broken"):
        for name in ("execute", "record", "replay"):
            during.setattr(device, name, lambda _run: (_ for _ in ()).throw(CompassError("broken")))
        meter.score(clips)
    assert len(body._slots) == 0
    assert body._slots.free == body.plan.slots
    assert meter.score(clips) == expected


def poison(folder: Path) -> None:
    manifest = read_manifest(folder)
    golden = dict(manifest.golden)
    golden["values"] = {**golden["values"], "progress": [1 - value for value in golden["values"]["progress"]]}
    write_manifest(folder, replace(manifest, golden=golden))


def test_a_poisoned_golden_does_not_pass(model: Path) -> None:
    poison(model)
    with pytest.raises(AssertionError):
        stood_in(model)


def test_a_damaged_tokenizer_or_embedding_is_refused(model: Path) -> None:
    path = model / "embedding.onnx.data"
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    with pytest.raises(IntegrityError, match=r"its content has changed"):
        stood_in(model)


# On a stand-in of CUDA and TensorRT


@pytest.fixture
def gpu(model: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeCuda, FakeTensorRt]:
    cuda, tensorrt = install(monkeypatch)
    know(tensorrt, model)
    return cuda, tensorrt


def know(tensorrt: FakeTensorRt, folder: Path) -> None:
    for name, record in read_manifest(folder).engines.items():
        tensorrt.graphs[(folder / name).read_bytes()] = folder / f"{record.part}.onnx"


@pytest.mark.parametrize("capturable", [True, False])
def test_the_gpu_gives_the_scores_of_the_ordinary_engine(
    model: Path, gpu: tuple[FakeCuda, FakeTensorRt], capturable: bool
) -> None:
    cuda, tensorrt = gpu
    tensorrt.capturable = capturable
    meter = RoboMeter(model, replace(OPTIONS, device="tensorrt"), slots=4)
    assert isinstance(meter.body, TensorRtBody)
    planned = meter.body.plan.memory()
    allocated = len(planned.buffers) + len(planned.staging) + 1  # and one workspace
    assert cuda.allocations == allocated
    frames = [picture(number) for number in range(20)]
    ordinary = RoboMeter(model, OPTIONS, slots=4).curve(SENTENCE, frames)
    assert same(ordinary, meter.curve(SENTENCE, frames))
    assert cuda.allocations == allocated
    assert (cuda.launches > 3) is capturable
    assert f"tensorrt-rtx {VERSION}, sm_86" in meter.name
    meter.body.close()
    assert (cuda.memory, cuda.graphs, cuda.streams) == ({}, 0, 0)


def test_kernels_are_compiled_once_for_a_driver(model: Path, gpu: tuple[FakeCuda, FakeTensorRt]) -> None:
    _, tensorrt = gpu
    for driver, compiled in ((tensorrt.driver, 2), (tensorrt.driver, 2), (b"another", 4), (b"another", 4)):
        tensorrt.driver = driver
        loading.load(model, OPTIONS).close()
        assert tensorrt.compiled == compiled  # one of the tower, one of the decoder


def test_garbage_is_refused_at_load(model: Path, gpu: tuple[FakeCuda, FakeTensorRt]) -> None:
    cuda, tensorrt = gpu
    tensorrt.off = 0.5
    with pytest.raises(
        IntegrityError, match=r"another answer.*tolerated.*compass-edge models build meter --target sm_86"
    ):
        loading.load(model)
    assert cuda.memory == {}


def test_garbage_of_a_thor_is_explained(samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = samples.copy(tmp_path / "meter", "robometer", **FP16)
    listed(folder, "sm_110", flavour="tensorrt")
    _, tensorrt = install(monkeypatch, (11, 0))
    know(tensorrt, folder)
    body = loading.load(folder)
    body.close()
    tensorrt.off = 0.5
    with pytest.raises(IntegrityError, match=r"JetPack 7\.1 is known to do so, silently.*JetPack 7\.2.*--batch 2"):
        loading.load(folder)


@REAL
def test_garbage_is_refused_at_build(samples: Samples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real engines, as on a machine with the card; what runs them is the stand-in."""
    folder = samples.copy(tmp_path / "meter", "robometer", **FP16)
    cache = Cache(tmp_path / "cache")
    build_engines(folder, target_of("sm_86"), LIMITS, cache=cache)
    real = building.open_library("tensorrt-rtx")
    _, tensorrt = install(monkeypatch)
    know(tensorrt, folder)
    monkeypatch.setattr(building, "open_library", lambda _flavour: real)
    monkeypatch.setattr(loading, "open_library", lambda flavour: Library(flavour, VERSION, tensorrt))
    write_manifest(folder, replace(read_manifest(folder), engines={}))
    before = (folder / "manifest.json").read_bytes()
    tensorrt.off = 0.5
    with pytest.raises(IntegrityError, match=r"another answer to the question of its manifest"):
        build_engines(folder, target_of("sm_86"), LIMITS, cache=cache)
    assert (folder / "manifest.json").read_bytes() == before
    tensorrt.off = 0.0
    built = build_engines(folder, target_of("sm_86"), LIMITS, cache=cache)
    assert built.cached == PARTS
    assert built.tested is not None
    assert built.tested.passed


def test_an_engine_that_the_library_does_not_take_is_refused(model: Path, gpu: tuple[FakeCuda, FakeTensorRt]) -> None:
    gpu[1].graphs.clear()
    with pytest.raises(IntegrityError, match=r"cannot load the engine .*Build it again"):
        loading.load(model)


def test_an_error_of_the_gpu_is_a_sentence(model: Path, gpu: tuple[FakeCuda, FakeTensorRt]) -> None:
    cuda, _ = gpu
    meter = RoboMeter(model, replace(OPTIONS, device="tensorrt"), slots=2)
    cuda.fails = "cudaMemcpyAsync"
    with pytest.raises(CompassError, match=r"GPU failed at cudaMemcpyAsync: error 700\. After such an error"):
        meter.score([Clip(SENTENCE, (picture(1),))])
    cuda.fails = "cudaGetDevice"
    with pytest.raises(EnvironmentFault, match=r"none answers here \(error 700\)"):
        loading.load(model)
    assert loading.target_here() is None


@REAL
def test_what_is_called_on_a_gpu_is_there_to_be_called() -> None:
    """The stand-ins are ours; the names in them must be those of CUDA and TensorRT."""
    api = importlib.import_module("tensorrt_rtx_bindings")
    wanted = {
        api.Runtime: ("deserialize_cuda_engine",),
        api.ICudaEngine: ("create_execution_context", "device_memory_size_v2", "get_tensor_name", "num_io_tensors"),
        api.IExecutionContext: ("execute_async_v3", "is_stream_capturable", "set_device_memory", "set_input_shape",
                                "set_tensor_address"),
    }  # fmt: skip
    assert all(hasattr(kind, name) for kind, names in wanted.items() for name in names)
    assert hasattr(api.ExecutionContextAllocationStrategy, "USER_MANAGED")
    if importlib.util.find_spec("cuda") is None and "CI" not in os.environ:
        pytest.skip("cuda-python is not installed")
    runtime = importlib.import_module("cuda.bindings.runtime")
    source = Path(gpu_module.__file__).read_text() + Path(cuda_module.__file__).read_text()
    names = set(re.findall(r"\b(?:cuda|_cuda|_runtime|self|kind|cudaMemcpyKind)\.(cuda\w+)", source))
    assert len(names) > 18
    known = {*dir(runtime), *dir(runtime.cudaDeviceAttr), *dir(runtime.cudaMemcpyKind)}
    assert names <= known


def test_a_language_model_has_no_engines(samples: Samples) -> None:
    with pytest.raises(UsageError, match=r"answers questions"):
        loading.load(samples.model("qwen3-vl", dialect="standard"))
    with pytest.raises(UsageError, match=r"engines are built of reward models"):
        OnnxVlm(samples.model("qwen3-vl", dialect="standard"), replace(OPTIONS, device="tensorrt"))
