"""Films are written whole or not at all, and the same pictures give the same file."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from film_samples import SIZE, numbers_shown, shoot

from compass_edge.data.film_writer import FilmWriter
from compass_edge.data.video_film import VideoFilm
from compass_edge.errors import UsageError
from compass_edge.frames.clip import clip_frame


def test_what_is_added_comes_back_in_order(tmp_path: Path) -> None:
    film = VideoFilm(shoot(tmp_path / "deep" / "a.mp4", 23, 12.5))
    assert numbers_shown(film) == [(number, number) for number in range(23)]
    assert (film.frames, film.fps, film.size) == (23, 12.5, SIZE)


def test_the_same_pictures_give_the_same_bytes(tmp_path: Path) -> None:
    """One of five may differ: x264 has been seen, once, to end its first picture otherwise. A clock or a thread would show in all."""
    films = Counter(sha256(shoot(tmp_path / f"{number}.mp4").read_bytes()).hexdigest() for number in range(5))
    assert max(films.values()) >= 4


def test_colours_survive(tmp_path: Path) -> None:
    red = np.zeros((96, 160, 3), np.uint8)
    red[...] = (200, 40, 20)
    with FilmWriter(tmp_path / "red.mp4", 10, *SIZE) as film:
        film.add(red)
    ((_, picture),) = VideoFilm(tmp_path / "red.mp4").pictures()
    assert np.abs(picture.astype(int) - red).max() <= 6


def test_a_lower_crf_is_closer_to_the_picture(tmp_path: Path) -> None:
    def error(crf: int) -> float:
        with FilmWriter(tmp_path / f"{crf}.mp4", 10, *SIZE, crf=crf) as film:
            film.add(clip_frame(0, *SIZE))
        ((_, picture),) = VideoFilm(tmp_path / f"{crf}.mp4").pictures()
        return float(np.abs(picture.astype(int) - clip_frame(0, *SIZE)).mean())

    assert error(0) < error(18) < error(45)


def test_the_file_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with FilmWriter(path, 10, *SIZE) as film:
        film.add(clip_frame(0, *SIZE))
        assert not path.exists()
    assert path.exists()
    assert [found.name for found in tmp_path.iterdir()] == ["a.mp4"]


def test_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = shoot(tmp_path / "a.mp4", 3)
    before = path.read_bytes()
    with pytest.raises(KeyError), FilmWriter(path, 10, *SIZE) as film:
        film.add(clip_frame(0, *SIZE))
        raise KeyError("a fault elsewhere")
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["a.mp4"]


def test_wrong_pictures_and_sizes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    for shape, dtype in (((96, 161, 3), np.uint8), ((96, 160), np.uint8), ((96, 160, 3), np.float32)):
        says = pytest.raises(UsageError, match=r"uint8 pictures of the shape \(96, 160, 3\)")
        with says, FilmWriter(path, 10, *SIZE) as film:
            film.add(np.zeros(shape, dtype))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="even width"):
        FilmWriter(path, 10, 161, 96)
    with pytest.raises(UsageError, match="frame rate"):
        FilmWriter(path, float("nan"), *SIZE)
    with pytest.raises(UsageError, match="crf"):
        FilmWriter(path, 10, *SIZE, crf=52)
    with pytest.raises(UsageError, match="no picture"):
        FilmWriter(path, 10, *SIZE).close()
    assert not list(tmp_path.iterdir())
