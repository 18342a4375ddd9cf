"""Films in video files: the path that a robot's frames take, cut, cropped, or a stretch of a longer file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import VIDEOS
from film_samples import all_ticks, numbers_shown, shoot

from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import IntegrityError, UsageError
from compass_edge.frames.clip import read_number, write_clip
from compass_edge.frames.source import open_source
from compass_edge.loop.intake import RecordedTicks
from compass_edge.loop.settings import Settings

LIBERO = VIDEOS / "libero-mem" / "KITCHEN_SCENE1_1_pick_up_the_bowl_and_place_it_back_on_the_plate.mp4"


def test_ticks_are_those_of_any_recording_but_for_their_digests(tmp_path: Path) -> None:
    film = VideoFilm(shoot(tmp_path / "a.mp4"))
    plain, seq = RecordedTicks(open_source(str(film.path)), Settings()), -1
    for tick in all_ticks(film):
        expected = plain.after(seq)
        assert expected is not None
        seq = tick.mark.seq
        assert (tick.mark, tick.gap, tick.missed) == (expected.mark, expected.gap, expected.missed)
        assert tick.image.digest == f"{film.key}/{seq}"
        assert tick.image.pixels.format == "yuv420p"
        assert (tick.image.pixels.planes[0] == expected.image.pixels.planes[0]).all()
    assert plain.after(seq) is None
    assert seq == 36


@pytest.mark.parametrize("crop", [None, (0, 0, 160, 48)])
def test_a_film_that_is_cut_ends_with_a_tick_at_its_last_frame(
    tmp_path: Path, crop: tuple[int, int, int, int] | None
) -> None:
    film = VideoFilm(shoot(tmp_path / "a.mp4"), crop)
    for stop, expected in ((24, [0, 10, 20, 23]), (21, [0, 10, 20]), (1, [0]), (None, [0, 10, 20, 30, 36])):
        ticks = all_ticks(film, stop)
        assert [tick.mark.seq for tick in ticks] == expected
        assert [read_number(tick.image.pixels.rgb()) for tick in ticks if crop is None] == (
            expected if crop is None else []
        )
        assert {tick.gap for tick in ticks} == {""}
        assert [round(tick.mark.captured_ns / 1e8) for tick in ticks] == expected  # 10 frames a second
    assert numbers_shown(film, 5, 12) == [(0, 0), (5, 5), (10, 10)] or crop is not None


def test_the_key_is_of_the_bytes_and_of_the_part_that_is_shown(tmp_path: Path) -> None:
    path = shoot(tmp_path / "a.mp4", 12)
    copy = tmp_path / "b.mp4"
    copy.write_bytes(path.read_bytes())
    assert VideoFilm(path).key == VideoFilm(copy).key
    others = {VideoFilm(path).key, VideoFilm(path, (0, 0, 8, 8)).key, VideoFilm(path, (0, 0, 8, 16)).key}
    others |= {VideoFilm(path, start_s=0.5, frames=3).key, VideoFilm(shoot(tmp_path / "c.mp4", 13)).key}
    assert len(others) == 5
    before = VideoFilm(path).key
    shoot(path, 13)
    assert VideoFilm(path).key != before


@pytest.mark.parametrize("rate", [10, 30, 29.97])
def test_a_stretch_of_a_file_begins_at_its_very_frame(tmp_path: Path, rate: float) -> None:
    path = shoot(tmp_path / "a.mp4", 60, rate)
    for first in (1, 17, 31, 48):
        for rounding in (0.0, 1e-6, -1e-6):
            film = VideoFilm(path, start_s=first / rate + rounding, frames=12)
            assert numbers_shown(film) == [(number, first + number) for number in range(12)]
    ticks = all_ticks(film)
    assert [tick.mark.seq for tick in ticks] == [0, 10, 11]
    assert [read_number(tick.image.pixels.rgb()) for tick in ticks] == [48, 58, 59]
    assert {tick.gap for tick in ticks} == {""}
    assert abs(ticks[1].mark.captured_ns - 10e9 / rate) < 1e7


def test_frames_are_counted_where_the_file_does_not_say(tmp_path: Path) -> None:
    film = VideoFilm(write_clip(tmp_path / "a.ts", frames=9, width=160, height=96))
    assert film.about.frames == 0
    assert film.frames == 9
    assert numbers_shown(film)[-1] == (8, 8)
    assert [tick.mark.seq for tick in all_ticks(film, 5, every=2)] == [0, 2, 4]


def test_a_file_that_is_cut_off_says_so(tmp_path: Path) -> None:
    path = write_clip(tmp_path / "a.mp4", frames=60, width=160, height=96, muxer={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    with pytest.raises(IntegrityError, match=r"a\.mp4' should have 60 frames and ends after \d+"):
        list(VideoFilm(path).pictures())
    ticks = VideoFilm(path).ticks(Settings(every=1))
    while (tick := ticks.after(-1 if (newest := ticks.newest()) is None else newest.mark.seq)) is not None:
        ticks.let_go((), tick.mark.seq, tick.mark.seq)
    assert "ends before the frames that it promises" in ticks.failure
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(IntegrityError, match=r"a\.mp4' should be a video"):
        assert VideoFilm(path).frames


def test_wrong_files_and_crops_are_named(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=r"gone\.mp4' cannot be read: No such file"):
        assert VideoFilm(tmp_path / "gone.mp4").frames
    with pytest.raises(IntegrityError, match=r"gone\.mp4' cannot be read"):
        assert VideoFilm(tmp_path / "gone.mp4").key
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(IntegrityError, match="should be a video"):
        assert VideoFilm(tmp_path / "empty.mp4").frames
    path = shoot(tmp_path / "a.mp4", 3)
    with pytest.raises(IntegrityError, match=r"\[100, 0, 61, 96\] .* leaves the 160x96 picture"):
        assert VideoFilm(path, (100, 0, 61, 96)).frames
    for crop in ((-1, 0, 5, 5), (0, 0, 0, 5)):
        with pytest.raises(UsageError, match="left, top, width, height"):
            VideoFilm(path, crop)
    for bad in ({"start_s": -1.0}, {"start_s": float("nan")}, {"frames": 0}):
        with pytest.raises(UsageError, match="begins at 0 s or later"):
            VideoFilm(path, **bad)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="n of at least 1"):
        list(VideoFilm(path).pictures(0))


@pytest.mark.skipif(not LIBERO.is_file(), reason="the shared videos are not here")
def test_the_left_half_of_a_libero_mem_video() -> None:
    whole, half = VideoFilm(LIBERO), VideoFilm(LIBERO, (0, 0, 256, 256))
    assert (whole.frames, whole.size, half.size) == (247, (512, 256), (256, 256))
    (_, all_of_it), (_, left) = next(whole.pictures()), next(half.pictures())
    assert (left == all_of_it[:, :256]).all()
    ticks = all_ticks(half, 35)
    assert [tick.mark.seq for tick in ticks] == [0, 10, 20, 30, 34]
    assert (ticks[0].image.pixels.rgb() == left).all()


@pytest.mark.skipif(not VIDEOS.is_dir(), reason="the shared videos are not here")
def test_a_yuv444p_film() -> None:
    film = VideoFilm(VIDEOS / "lerobot" / "umi_cup_in_the_wild.mp4")
    assert (film.frames, film.fps, film.size) == (400, 10.0, (224, 224))
    ticks = all_ticks(film, 12)
    assert [tick.mark.seq for tick in ticks] == [0, 10, 11]
    shown = dict(film.pictures(10, 12))
    assert np.array_equal(ticks[1].image.pixels.rgb(), shown[10])
