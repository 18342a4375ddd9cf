"""The fused pass against transformers' image processor, against the same operations in torch, and against float64.

Two references, because torchvision is not needed to run this: transformers' PIL/numpy processor, and the torch
operations its torchvision processor is made of. They differ from one another by up to one 8-bit level for each
axis that is resized (Pillow's weights have 22 fraction bits, torch's about 15); ours is bit-equal to torch. Pillow 13
also resizes columns before rows where that is cheaper. Between the passes pixels are clipped to 8 bits, so the order
shows at hard edges; there the reference is Pillow made to keep torch's order.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
Image = pytest.importorskip("PIL.Image")

from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (
    Qwen2VLImageProcessorPil,
    smart_resize,
)

from compass_edge import _native

QWEN3 = {"patch": 16, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "min_pixels": 65536, "max_pixels": 16777216}
QWEN25 = {
    "patch": 14,
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
    "min_pixels": 3136,
    "max_pixels": 1003520,
}
MODELS = {"qwen3": QWEN3, "qwen25": QWEN25}

# (width, height). Every robot camera's usual sizes, odd ones, tall, wide, tiny ones that are enlarged.
UNCHANGED = {
    "qwen3": [(640, 480), (320, 256), (256, 256), (1280, 800), (512, 288), (960, 544), (224, 320), (2048, 32)],
    "qwen25": [(644, 476), (56, 56), (224, 224), (448, 252), (1288, 728), (28, 112), (532, 28)],
}
RESIZED = [
    (1280, 720), (848, 480), (640, 400), (1920, 1080), (424, 240), (320, 240), (640, 360), (800, 600),
    (1024, 768), (960, 540), (641, 479), (639, 481), (333, 777), (777, 333), (100, 100), (64, 48),
    (33, 17), (17, 33), (1, 1), (5, 300), (300, 5), (255, 257), (1000, 1000), (1441, 901),
    (2560, 1440), (50, 1900), (1280, 719), (720, 1280),
]  # fmt: skip
CASES = [(m, s) for m in MODELS for s in (*UNCHANGED[m], *RESIZED)]


def picture(width: int, height: int, seed: int = 0) -> np.ndarray:
    """Smooth shapes with noise and hard edges, so that a filter has both to get wrong."""
    rng = np.random.default_rng(seed + 7 * width + height)
    y, x = np.mgrid[0:height, 0:width]
    waves = [127.5 + 127.5 * np.sin(x / (3.0 + 5 * c) + y / (11.0 - 2 * c) + c) for c in range(3)]
    image = np.stack(waves, axis=-1) + rng.normal(0, 25, (height, width, 3))
    image[height // 3 : height // 2, width // 4 : width // 2] = (255, 0, 255)
    return np.clip(image, 0, 255).astype(np.uint8)


def preprocessor(model: str, dtype: str = "f32", isa: str | None = None) -> _native.Preprocessor:
    return _native.Preprocessor(**MODELS[model], merge=2, temporal=2, dtype=dtype, isa=isa)


def transformers_patches(model: str, image: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
    spec = MODELS[model]
    processor = Qwen2VLImageProcessorPil(
        patch_size=spec["patch"],
        image_mean=list(spec["mean"]),
        image_std=list(spec["std"]),
        size={"shortest_edge": spec["min_pixels"], "longest_edge": spec["max_pixels"]},
    )
    features = processor(images=image, input_data_format="channels_last", return_tensors="np")
    _, height, width = features["image_grid_thw"][0].tolist()
    return features["pixel_values"], (height, width)


def rows_first(image: np.ndarray, grid: tuple[int, int], patch: int) -> np.ndarray:
    """Pillow's resize with the horizontal pass before the vertical one."""
    height, width = grid[0] * patch, grid[1] * patch
    rows = Image.fromarray(image).resize((width, image.shape[0]), Image.Resampling.BICUBIC)
    return np.asarray(rows.resize((width, height), Image.Resampling.BICUBIC))


def torch_patches(model: str, image: np.ndarray) -> torch.Tensor:
    """What transformers' torchvision processor does, in torch alone."""
    spec, height, width = MODELS[model], *image.shape[:2]
    patch, factor = spec["patch"], 2 * spec["patch"]
    size = smart_resize(height, width, factor, spec["min_pixels"], spec["max_pixels"])
    pixels = torch.from_numpy(image).permute(2, 0, 1).contiguous()[None]
    if size != (height, width):
        pixels = torch.nn.functional.interpolate(pixels, size=size, mode="bicubic", antialias=True, align_corners=False)
    scale = 1.0 / (1 / 255)
    mean = (torch.tensor(spec["mean"]) * scale).view(1, 3, 1, 1)
    std = (torch.tensor(spec["std"]) * scale).view(1, 3, 1, 1)
    values = pixels.to(torch.float32).sub_(mean).div_(std)
    grid_h, grid_w = size[0] // patch, size[1] // patch
    blocks = values.reshape(1, 3, grid_h // 2, 2, patch, grid_w // 2, 2, patch).permute(0, 2, 5, 3, 6, 1, 4, 7)
    repeated = blocks.unsqueeze(6).expand(-1, -1, -1, -1, -1, -1, 2, -1, -1)
    return repeated.reshape(grid_h * grid_w, 6 * patch * patch)


def levels(model: str, patches: np.ndarray) -> np.ndarray:
    """Normalised values back to 8-bit levels."""
    spec = MODELS[model]
    values = patches.astype(np.float64).reshape(len(patches), 3, -1)
    std, mean = (np.array(spec[key]).reshape(1, 3, 1) for key in ("std", "mean"))
    return (values * std + mean) * 255


@pytest.mark.parametrize(("model", "size"), CASES)
def test_grid_is_transformers(model: str, size: tuple[int, int]) -> None:
    spec, (width, height) = MODELS[model], size
    expected = smart_resize(height, width, 2 * spec["patch"], spec["min_pixels"], spec["max_pixels"])
    grid = preprocessor(model).grid(width, height)
    assert tuple(side * spec["patch"] for side in grid) == expected


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize(("model", "size"), CASES)
def test_bit_equal_to_torch(model: str, size: tuple[int, int], isa: str) -> None:
    image = picture(*size)
    expected = torch_patches(model, image)
    f32 = preprocessor(model, "f32", isa).run(image)
    f16 = preprocessor(model, "f16", isa).run(image)
    bf16 = preprocessor(model, "bf16", isa).run(image)
    assert np.array_equal(f32.view(np.uint32), expected.numpy().view(np.uint32))
    assert np.array_equal(f16.view(np.uint16), expected.half().numpy().view(np.uint16))
    assert np.array_equal(bf16, expected.bfloat16().view(torch.uint16).numpy())


@pytest.mark.parametrize(("model", "size"), [(m, s) for m in MODELS for s in UNCHANGED[m]])
def test_equal_to_transformers_without_a_resize(model: str, size: tuple[int, int]) -> None:
    image = picture(*size)
    expected, grid = transformers_patches(model, image)
    ours = preprocessor(model).run(image)
    assert preprocessor(model).grid(*size) == grid
    # transformers' numpy path rescales, then normalises: it rounds twice where the fused form rounds once.
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("model", "size"), [(m, s) for m in MODELS for s in RESIZED])
def test_within_one_level_an_axis_of_transformers_with_a_resize(model: str, size: tuple[int, int]) -> None:
    image = picture(*size)
    expected, grid = transformers_patches(model, image)
    ours = preprocessor(model).run(image)
    assert preprocessor(model).grid(*size) == grid
    patch = MODELS[model]["patch"]
    in_order = rows_first(image, grid, patch)
    resized = Image.fromarray(image).resize((grid[1] * patch, grid[0] * patch), Image.Resampling.BICUBIC)
    if not np.array_equal(in_order, np.asarray(resized)):
        expected, _ = transformers_patches(model, in_order)
    difference = np.abs(levels(model, ours) - levels(model, expected))
    axes = (grid[0] * patch != size[1]) + (grid[1] * patch != size[0])
    assert difference.max() <= axes + 1e-3
    assert (difference > 1.5).mean() < 1e-4
    assert difference.mean() < 0.02


def cubic(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def exact_weights(size_in: int, size_out: int) -> np.ndarray:
    """The antialiased bicubic as a matrix, in float64."""
    scale = size_in / size_out
    stretch = max(scale, 1.0)
    center = scale * (np.arange(size_out)[:, None] + 0.5)
    position = np.arange(size_in)[None, :] + 0.5
    low, high = np.floor(center - 2 * stretch + 0.5), np.floor(center + 2 * stretch + 0.5)
    inside = (position - 0.5 >= low) & (position - 0.5 < high)
    weights = np.where(inside, cubic((position - center) / stretch), 0.0)
    return weights / weights.sum(axis=1, keepdims=True)


MATRICES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def exact_rgb(y: np.ndarray, u: np.ndarray, v: np.ndarray, matrix: str, value_range: str) -> np.ndarray:
    """Y'CbCr to R'G'B' in float64, clipped to 0..255 and not rounded."""
    kr, kb = MATRICES[matrix]
    luma_scale, chroma_scale, black = (255 / 219, 255 / 224, 16) if value_range == "limited" else (1.0, 1.0, 0)
    luma, cb, cr = (y - black) * luma_scale, (u - 128.0) * chroma_scale, (v - 128.0) * chroma_scale
    kg = 1 - kr - kb
    red, blue = luma + 2 * (1 - kr) * cr, luma + 2 * (1 - kb) * cb
    green = luma - 2 * kb * (1 - kb) / kg * cb - 2 * kr * (1 - kr) / kg * cr
    return np.clip(np.stack([red, green, blue]), 0, 255)


def split(pixel_format: str, width: int, height: int) -> tuple[tuple[np.ndarray, ...], list[np.ndarray]]:
    """Planes of that format, and the same samples as full-size float64 Y, U, V."""
    rgb = picture(width, height).astype(np.float64)
    half_w, half_h = (width + 1) // 2, (height + 1) // 2
    luma = np.clip(16 + rgb @ [0.257, 0.504, 0.098], 0, 255).astype(np.uint8)
    rows = 1 if pixel_format == "yuyv" else 2
    corner = rgb[::rows, ::2]
    u = np.clip(128 + corner @ [-0.148, -0.291, 0.439], 0, 255).astype(np.uint8)
    v = np.clip(128 + corner @ [0.439, -0.368, -0.071], 0, 255).astype(np.uint8)
    full = [p.repeat(rows, 0).repeat(2, 1)[:height, :width] for p in (u, v)]
    samples = [p.astype(np.float64) for p in (luma, *full)]
    if pixel_format == "yuv420p":
        return (luma, u, v), samples
    if pixel_format == "nv12":
        return (luma, np.stack([u, v], axis=-1).reshape(half_h, 2 * half_w)), samples
    even = np.pad(luma, ((0, 0), (0, width % 2)))
    packed = np.stack([even[:, 0::2], u, even[:, 1::2], v], axis=-1)
    return (packed.reshape(height, 4 * half_w),), samples


@pytest.mark.parametrize("value_range", ["limited", "full"])
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("pixel_format", ["yuv420p", "nv12", "yuyv"])
@pytest.mark.parametrize("size", [(640, 480), (1280, 720), (847, 479), (320, 240), (1001, 301)])
def test_yuv_against_float64(size: tuple[int, int], pixel_format: str, matrix: str, value_range: str) -> None:
    """Nothing is rounded in the reference; it is clipped where ours has 8 bits, rows between the passes included.

    Bound: without a resize the last rounding and the fixed point (0.5 + 0.05 level); with one, two levels, because the
    picture and the rows between the passes are rounded too and the filter's negative lobes amplify that, 1.3 an axis.
    """
    width, height = size
    planes, samples = split(pixel_format, width, height)
    exact = exact_rgb(*samples, matrix, value_range)
    ours = preprocessor("qwen3", "f32")
    grid_h, grid_w = ours.grid(width, height)
    resized = (grid_h * 16, grid_w * 16) != (height, width)
    if resized:
        down, across = exact_weights(height, grid_h * 16), exact_weights(width, grid_w * 16)
        exact = np.clip(down @ np.clip(exact @ across.T, 0, 255), 0, 255)
    blocks = exact.reshape(3, grid_h // 2, 2, 16, grid_w // 2, 2, 16).transpose(1, 4, 2, 5, 0, 3, 6)
    expected = np.repeat(blocks[:, :, :, :, :, None], 2, axis=5).reshape(grid_h * grid_w, 3, -1)
    got = levels("qwen3", ours.run_planes(planes, pixel_format, width, height, matrix, value_range))
    difference = np.abs(got - expected)
    assert difference.max() <= (2.0 if resized else 0.56)
    assert difference.mean() <= (0.45 if resized else 0.26)


def test_gray_equals_rgb_of_equal_channels() -> None:
    gray = picture(333, 200)[:, :, 0].copy()
    ours = preprocessor("qwen25")
    assert np.array_equal(ours.run(gray), ours.run(np.repeat(gray[:, :, None], 3, axis=2)))


def test_strided_views_and_given_outputs() -> None:
    image = picture(700, 500)
    ours = preprocessor("qwen3", "f16")
    crop = image[10:490, 30:670]
    out = np.empty((math.prod(ours.grid(640, 480)), ours.columns), np.float16)
    assert ours.run(crop, out) is out
    assert np.array_equal(out, ours.run(np.ascontiguousarray(crop)))
    assert np.array_equal(ours.run(crop[::-1]), ours.run(np.ascontiguousarray(crop[::-1])))


def test_mistakes_are_named() -> None:
    image, ours = picture(640, 480), preprocessor("qwen3", "f16")
    with pytest.raises(ValueError, match=r"shape \(1200, 1536\), got float32"):
        ours.run(image, np.empty((1200, 1536), np.float32))
    with pytest.raises(ValueError, match="read-only"):
        frozen = np.empty((1200, 1536), np.float16)
        frozen.flags.writeable = False
        ours.run(image, frozen)
    with pytest.raises(ValueError, match="ascontiguousarray"):
        ours.run(image[:, ::2])
    with pytest.raises(ValueError, match="ascontiguousarray"):
        ours.run(image.astype(np.float32))
    with pytest.raises(ValueError, match="Expected 3 planes for yuv420p, got 1"):
        ours.run_planes((image[:, :, 0].copy(),), "yuv420p", 640, 480)
    with pytest.raises(ValueError, match=r"plane 1 of a yuv420p .* at least \(240, 320\)"):
        small = np.zeros((240, 319), np.uint8)
        ours.run_planes((image[:, :, 0].copy(), small, small), "yuv420p", 640, 480)
    with pytest.raises(ValueError, match="aspect ratio"):
        ours.grid(10000, 10)
    with pytest.raises(ValueError, match="Expected a dtype of f32, f16, bf16, got 'int8'"):
        _native.Preprocessor(dtype="int8")
    with pytest.raises(ValueError, match="sse9"):
        _native.Preprocessor(isa="sse9")
