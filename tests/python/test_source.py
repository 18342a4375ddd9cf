"""Recorded sources on both backends: every frame, in order, at its time, in its format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import VIDEOS

from compass_edge.errors import CompassError, EnvironmentFault, UsageError
from compass_edge.frames.clip import clip_frame, read_number, write_clip
from compass_edge.frames.source import Source, backends, open_source

Open = Callable[..., Source]
Golden = Callable[[str], str]

WHOLE = {
    "h264.mp4": 60,
    "h264.mkv": 60,
    "h264.ts": 60,
    "yuv444p.mp4": 24,
    "ten_bit.mp4": 24,
    "odd.avi": 12,
    "variable.mkv": 24,
    "redrawn.mov": 24,
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("threads", [1, 4])
def test_every_frame_comes_in_order(opened: Open, golden: Golden, name: str, threads: int) -> None:
    source = opened(golden(name), threads=threads)
    times = []
    for number, frame in enumerate(source):
        assert read_number(frame.rgb()) == number == frame.seq
        assert not frame.damaged
        assert not frame.gap_before
        assert frame.captured_ns > 0
        times.append(frame.time)
    assert len(times) == WHOLE[name]
    assert times == sorted(set(times))
    assert source.state == "ended"
    assert source.stats.frames == source.stats.packets == WHOLE[name]
    assert source.stats.damaged_packets == 0
    assert not source.stats.truncated
    assert source.step() is None


def test_a_source_says_what_it_is(opened: Open, golden: Golden) -> None:
    info = opened(golden("h264.mp4")).info
    assert (info.codec, info.pixel_format, info.width, info.height) == ("h264", "yuv420p", 128, 96)
    assert (info.rotation, info.frames, info.live) == (0, 60, False)
    assert info.frame_rate == pytest.approx(30)
    assert info.duration_s == pytest.approx(2.0, abs=0.1)


def test_odd_sizes_keep_their_last_row_and_column(opened: Open, golden: Golden) -> None:
    frame = opened(golden("odd.avi")).step()
    assert frame is not None
    assert (frame.width, frame.height) == (129, 95)
    assert [plane.shape for plane in frame.planes] == [(95, 129), (48, 65), (48, 65)]
    assert frame.range == "full"
    assert np.abs(frame.rgb().astype(int) - clip_frame(0, 129, 95)).mean() < 8


def test_variable_frame_times_are_kept(opened: Open, golden: Golden) -> None:
    assert [f.pts for f in opened(golden("variable.mkv"))] == [33 * n + 16 * (n // 3) + n % 3 * 5 for n in range(24)]


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_rotation_is_np_rot90(opened: Open, tmp_path: Path, rotation: int) -> None:
    options = {"crf": "20", "threads": "1"}
    lying = write_clip(tmp_path / "lying.mp4", frames=6, width=128, height=96, options=options)
    turned = write_clip(tmp_path / "turned.mp4", frames=6, width=128, height=96, options=options, rotation=rotation)
    upright = opened(turned)
    assert upright.info.rotation == rotation
    for before, after in zip(opened(lying), upright, strict=True):
        assert (after.width, after.height) == ((96, 128) if rotation % 180 else (128, 96))
        for a, b in zip(before.planes, after.planes, strict=True):
            np.testing.assert_array_equal(np.rot90(a, -rotation // 90), b)
    assert upright.stats.converted == 6


class Form(NamedTuple):
    codec: str
    container: str
    pixel_format: str  # FFmpeg's name
    ring_format: str
    range: str | None

    def write(self, folder: Path, size: tuple[int, int]) -> Path:
        path = folder / f"clip.{self.container}"
        try:
            return write_clip(
                path, frames=4, width=size[0], height=size[1], codec=self.codec, pixel_format=self.pixel_format, rate=25
            )
        except (ValueError, OSError) as error:
            pytest.skip(f"PyAV here cannot encode it: {error}")


FORMS = [
    Form("rawvideo", "mkv", "yuv420p", "yuv420p", "limited"),
    Form("rawvideo", "avi", "nv12", "nv12", "limited"),
    Form("rawvideo", "mov", "yuyv422", "yuyv", "limited"),
    Form("rawvideo", "avi", "yuyv422", "yuyv", "limited"),
    Form("rawvideo", "avi", "gray", "gray8", "full"),  # stored bottom row first
    Form("rawvideo", "avi", "bgr24", "rgb24", None),
    Form("ffv1", "mkv", "yuv420p", "yuv420p", "limited"),
    Form("ffv1", "mkv", "yuv422p10le", "yuv420p", "limited"),
    Form("ffv1", "mkv", "yuva420p", "yuv420p", "limited"),
    Form("ffv1", "mkv", "gray", "gray8", "full"),
    Form("ffv1", "mkv", "gray16le", "gray8", "full"),
    Form("ffv1", "mkv", "bgr0", "rgb24", None),
    Form("mjpeg", "avi", "yuvj420p", "yuv420p", "full"),
    Form("mjpeg", "avi", "yuvj444p", "yuv420p", "full"),
    Form("png", "mov", "rgb24", "rgb24", None),
    Form("png", "mov", "gray", "gray8", "full"),
    Form("png", "mov", "rgba", "rgb24", None),
    Form("libx264rgb", "mkv", "rgb24", "rgb24", None),
    Form("gif", "gif", "rgb8", "rgb24", None),
    Form("mpeg2video", "mpg", "yuv420p", "yuv420p", "limited"),
    Form("prores_ks", "mov", "yuv422p10le", "yuv420p", "limited"),
]
FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.codec}-{form.container}-{form.pixel_format}")


@FORM
@pytest.mark.parametrize("size", [(128, 96), (130, 94), (129, 95)])
def test_any_format_and_size_ends_in_a_ring_format(
    opened: Open, tmp_path: Path, form: Form, size: tuple[int, int]
) -> None:
    numbers = []
    for number, frame in enumerate(opened(form.write(tmp_path, size))):
        assert (frame.width, frame.height, frame.format) == (*size, form.ring_format)
        assert form.range is None or frame.range == form.range
        numbers.append(read_number(frame.rgb()))
        expected = clip_frame(number, *size).astype(int)
        if form.ring_format == "gray8":
            expected = (expected @ [0.299, 0.587, 0.114])[..., None]
        if form.codec != "gif":  # eight bits a pixel
            assert np.abs(frame.rgb() - expected).mean() < 4
    assert numbers == [0, 1, 2, 3]


@pytest.mark.skipif(len(backends()) < 2, reason="needs both backends")
@FORM
def test_backends_agree(tmp_path: Path, form: Form) -> None:
    path = str(form.write(tmp_path, (132, 90)))
    with open_source(path, backend="ffmpeg") as one, open_source(path, backend="pyav") as other:
        assert (one.info.codec, one.info.pixel_format) == (other.info.codec, other.info.pixel_format)
        for a, b in zip(one, other, strict=True):
            assert (a.format, a.matrix, a.range, a.time_base) == (b.format, b.matrix, b.range, b.time_base)
            assert a.pts == b.pts or None in (a.pts, b.pts)  # FFmpeg 5 leaves an MPEG-PS's last picture unstamped
            for p, q in zip(a.planes, b.planes, strict=True):
                assert int(np.abs(p.astype(int) - q).max()) <= 1


@pytest.mark.parametrize("matrix", ["bt709", "bt601"])
@pytest.mark.parametrize("levels", ["limited", "full"])
def test_matrix_and_range_are_the_streams_own(opened: Open, tmp_path: Path, matrix: str, levels: str) -> None:
    names = {"bt709": "bt709", "bt601": "smpte170m"}
    params = f"colormatrix={names[matrix]}:fullrange={'on' if levels == 'full' else 'off'}"
    path = write_clip(tmp_path / "colour.mp4", frames=2, width=128, height=96, options={"x264-params": params})
    frame = opened(path).step()
    assert frame is not None
    assert (frame.matrix, frame.range) == (matrix, levels)


def test_ten_bits_and_444_keep_their_luma(opened: Open, golden: Golden) -> None:
    import av

    for name in ("yuv444p.mp4", "ten_bit.mp4"):
        with av.open(golden(name)) as container:
            for ours, theirs in zip(opened(golden(name)), container.decode(video=0), strict=True):
                plane, kind = theirs.planes[0], np.uint8 if name.startswith("yuv444") else np.dtype("<u2")
                rows = np.frombuffer(plane, kind).reshape(plane.height, -1)[:, : plane.width]
                luma = rows / (1 if kind is np.uint8 else 4)
                assert np.abs(ours.planes[0].astype(float) - luma).max() <= 1


@pytest.mark.skipif("ffmpeg" not in backends(), reason="needs the C++ decoder")
def test_pictures_are_decoded_into_their_slots(golden: Golden) -> None:
    for name in ("h264.mp4", "odd.avi", "redrawn.mov"):
        with open_source(golden(name), backend="ffmpeg") as source:
            frames = sum(1 for _ in source)
            assert (source.stats.direct, source.stats.copied) == (frames, 0)


def test_held_frames_stay_as_they_are(opened: Open, golden: Golden) -> None:
    for name in ("h264.mp4", "redrawn.mov"):
        source = opened(golden(name), history=1, leases=6, threads=3)
        held: list[tuple[object, list[bytes]]] = []
        for frame in source:
            held.append((frame, [plane.tobytes() for plane in frame.planes]))
            if len(held) == 5:
                old, before = held.pop(0)
                assert [plane.tobytes() for plane in old.planes] == before  # type: ignore[attr-defined]
                del old
            del frame


@pytest.mark.parametrize("name", ["h264.mp4", "h264.mkv", "h264.ts", "variable.mkv", "odd.avi"])
def test_seek_is_exact(opened: Open, golden: Golden, name: str) -> None:
    source = opened(golden(name))
    times = [frame.time for frame in source]
    order = np.random.default_rng(5).permutation(len(times))
    for index in [*range(len(times)), *reversed(range(len(times))), *order]:
        source.seek(times[index])
        frame = source.step()
        assert frame is not None
        assert (read_number(frame.rgb()), frame.time) == (index, times[index])
        assert not frame.damaged
        assert frame.gap_before
        following = source.step()
        assert (following is None) if index + 1 == len(times) else (read_number(following.rgb()) == index + 1)
    assert source.stats.damaged_packets == 0


def test_seek_before_the_first_step_and_iteration_after_a_seek(opened: Open, golden: Golden) -> None:
    source = opened(golden("h264.mp4"))
    source.seek(1.0)
    assert [read_number(frame.rgb()) for frame in source] == list(range(30, 60))
    source.seek(0)
    assert [read_number(frame.rgb()) for frame in source] == list(range(60))


@pytest.mark.parametrize("time_s", [-0.1, 4.0, 1e300, float("inf"), float("nan")])
def test_seek_outside_is_refused(opened: Open, golden: Golden, time_s: float) -> None:
    source = opened(golden("h264.mp4"))
    with pytest.raises(UsageError, match="cannot seek to"):
        source.seek(time_s)
    frame = source.step()
    assert frame is not None
    assert frame.seq == 0


@pytest.mark.parametrize("start_ms", [-500, 7000])
def test_a_file_need_not_start_at_zero(opened: Open, tmp_path: Path, start_ms: int) -> None:
    path = tmp_path / "late.mkv" if start_ms > 0 else tmp_path / "early.mov"
    pts = [start_ms + 40 * n for n in range(30)]
    write_clip(path, frames=30, width=128, height=96, options={"g": "8", "bf": "0"}, pts=pts)
    source = opened(path)
    times = [frame.time for frame in source]
    assert len(times) >= 17
    for index in (len(times) - 1, 0, len(times) // 2):
        source.seek(max(times[index], 0.0))
        frame = source.step()
        assert frame is not None
        assert frame.time == max(t for t in times if t <= max(times[index], 0.0) + 1e-9)


def test_a_stream_without_time_stamps_plays_and_says_that_it_cannot_be_searched(opened: Open, golden: Golden) -> None:
    source = opened(golden("two_sizes.h264"))
    frame = source.step()
    assert frame is not None
    assert (frame.pts, frame.time) == (None, None)
    with pytest.raises(UsageError, match="no time stamps"):
        source.seek(0.2)


def test_pictures_that_outgrow_the_ring_are_a_gap(opened: Open, golden: Golden) -> None:
    source = opened(golden("two_sizes.h264"))
    gaps = [(read_number(frame.rgb()), frame.gap_before) for frame in source]
    assert gaps == [(n % 12, n == 12) for n in range(24)]
    assert source.stats.oversize == 12
    roomy = opened(golden("two_sizes.h264"), max_width=192, max_height=144)
    assert [frame.width for frame in roomy] == [128] * 12 + [192] * 12 + [128] * 12
    assert roomy.stats.oversize == 0


def test_wrong_settings_are_one_sentence(opened: Open, golden: Golden) -> None:
    for settings, words in (
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"threads": 0}, "threads"),
        ({"threads": 1000}, "threads"),
        ({"history": 0}, "at least 1"),
        ({"leases": 0}, "at least 1"),
        ({"leases": 100_000}, "leases|MiB"),
        ({"max_bytes": 1000}, "max_bytes"),
        ({"max_backoff_s": 0}, "max_backoff_s"),
        ({"max_width": 1 << 20}, "pixels|MiB"),
    ):
        with pytest.raises(CompassError, match=words):
            opened(golden("h264.mp4"), **settings)
    with pytest.raises(EnvironmentFault, match="not available"):
        open_source(golden("h264.mp4"), backend="other")  # type: ignore[arg-type]


@pytest.mark.skipif("ffmpeg" not in backends(), reason="PyAV ignores options it does not know")
def test_unknown_options_are_named(golden: Golden) -> None:
    with pytest.raises(UsageError, match="no option 'nonsense'"):
        open_source(golden("h264.mp4"), backend="ffmpeg", options={"nonsense": "1"})


REAL = sorted(VIDEOS.glob("*/*.mp4")) if VIDEOS.is_dir() else []


@pytest.mark.skipif(not REAL, reason="the robot videos are not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:32])
def test_real_videos_equal_pyav(opened: Open, path: Path) -> None:
    import av

    source = opened(path, threads=2)
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        count = 0
        for theirs in container.decode(video=0):
            ours = source.step()
            assert ours is not None
            assert ours.pts == theirs.pts
            count += 1
            if count % 7:
                continue  # the content of every seventh frame keeps this under a minute
            width, height = theirs.width, theirs.height
            planes = theirs.to_ndarray()
            if theirs.format.name == "yuv420p":
                np.testing.assert_array_equal(ours.planes[0], planes[:height])
                chroma = planes[height:].reshape(2, height // 2, width // 2)
                np.testing.assert_array_equal(ours.planes[1], chroma[0])
                np.testing.assert_array_equal(ours.planes[2], chroma[1])
            else:
                assert theirs.format.name == "yuv444p"
                np.testing.assert_array_equal(ours.planes[0], planes[0])
                for plane in (1, 2):
                    mean = planes[plane].reshape(height // 2, 2, width // 2, 2).mean((1, 3))
                    assert np.abs(ours.planes[plane] - mean).mean() < 1.5
        assert source.step() is None
        assert count == source.stats.frames > 0
