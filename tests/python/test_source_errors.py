"""What is not a video, or not a whole one: one clear sentence, or every frame that can still be had."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compass_edge.errors import CompassError, EnvironmentFault, UsageError
from compass_edge.frames.clip import read_number, write_clip
from compass_edge.frames.source import Source

Open = Callable[..., Source]
Golden = Callable[[str], str]


def refused(opened: Open, url: str | Path, words: str) -> None:
    with pytest.raises(CompassError, match=words) as caught:
        opened(url)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert str(url) in text
    assert isinstance(caught.value, UsageError)


def test_missing_empty_and_foreign_files(opened: Open, tmp_path: Path, golden: Golden) -> None:
    refused(opened, tmp_path / "nowhere.mp4", "There is no file")
    refused(opened, tmp_path, "is a folder")
    empty = tmp_path / "empty.mp4"
    empty.touch()
    refused(opened, empty, "is empty \\(0 bytes\\)")
    words = tmp_path / "words.mp4"
    words.write_text("Nothing to see here, only words.\n" * 50)
    refused(opened, words, "is not a video")
    zeros = tmp_path / "zeros.bin"
    zeros.write_bytes(bytes(100_000))
    refused(opened, zeros, "is not a video")
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(Path(golden("h264.mp4")).read_bytes()[:2500])
    refused(opened, cut, "without a readable index \\(moov\\)")


def test_a_named_pipe_does_not_block(opened: Open, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    refused(opened, pipe, "is a named pipe")


def test_urls_that_are_none(opened: Open) -> None:
    with pytest.raises(UsageError, match="needs a URL"):
        opened("")
    with pytest.raises(UsageError, match="zero byte"):
        opened("a\0b.mp4")
    with pytest.raises(CompassError, match="No frames could be had from the camera"):
        opened("/dev/video97")
    with pytest.raises(CompassError, match="No stream could be opened"):
        opened("tcp://127.0.0.1:1", timeout_s=2)
    with pytest.raises(CompassError, match="No stream could be opened"):
        opened("nonsense://somewhere", timeout_s=2)


def wave(path: Path) -> Path:
    samples = bytes(16_000)
    header = (
        b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16_000, 2, 16) + b"data" + struct.pack("<I", len(samples))
    )
    path.write_bytes(b"RIFF" + struct.pack("<I", len(header) + len(samples)) + header + samples)
    return path


def test_sound_is_no_video(opened: Open, tmp_path: Path) -> None:
    refused(opened, wave(tmp_path / "sound.wav"), "no video stream")


def flac_with_cover(path: Path) -> Path:
    """FLAC: the stream's description, then a picture block. FFmpeg shows the picture as a video stream of one frame."""
    import av

    sound, cover = path.with_suffix(".plain.flac"), path.with_suffix(".png")
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("flac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24").save(str(cover))
    picture = cover.read_bytes()
    body = struct.pack(">II", 3, 9) + b"image/png" + struct.pack(">IIIIII", 0, 64, 64, 24, 0, len(picture)) + picture
    data = sound.read_bytes()
    described = 4 + 4 + int.from_bytes(data[5:8], "big")
    info = data[:4] + bytes([data[4] & 0x7F]) + data[5:described]
    path.write_bytes(info + bytes([6]) + len(body).to_bytes(3, "big") + body + data[described:])
    return path


def test_a_cover_picture_is_no_video(opened: Open, tmp_path: Path) -> None:
    refused(opened, flac_with_cover(tmp_path / "song.flac"), "no video stream")


@pytest.mark.parametrize("kind", ["hls", "hls remote", "concat", "sdp"])
def test_a_local_playlist_opens_nothing_else(opened: Open, tmp_path: Path, golden: Golden, kind: str) -> None:
    inside = tmp_path / "inside.ts"
    inside.write_bytes(Path(golden("h264.ts")).read_bytes())
    name, text = {
        "hls": ("list.m3u8", f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{inside}\n#EXT-X-ENDLIST\n"),
        "hls remote": (
            "list.m3u8",
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
        ),
        "concat": ("list.ffconcat", "ffconcat version 1.0\nfile inside.ts\n"),
        "sdp": ("list.sdp", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\n"),
    }[kind]
    path = tmp_path / name
    path.write_text(text)
    refused(opened, path, "list")


@pytest.mark.parametrize("name", ["a space.mp4", "12:30.mp4", "café 杯.mp4", "100%d.mp4", "-dash.mp4", "http:x.mp4"])
def test_any_file_name_will_do(
    opened: Open, tmp_path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_bytes(Path(golden("h264.mp4")).read_bytes())
    assert sum(1 for _ in opened(tmp_path / name)) == 60
    monkeypatch.chdir(tmp_path)
    assert sum(1 for _ in opened(name)) == 60


def test_a_truncated_file_gives_what_it_has(opened: Open, tmp_path: Path, golden: Golden) -> None:
    data = Path(golden("odd.avi")).read_bytes()
    path = tmp_path / "half.avi"
    path.write_bytes(data[: len(data) * 2 // 3])
    source = opened(path)
    numbers = [read_number(frame.rgb()) for frame in source]
    assert numbers[:3] == [0, 1, 2]
    assert len(numbers) < 12
    assert source.stats.truncated
    assert source.state == "ended"


def test_damage_is_counted_and_survived(opened: Open, tmp_path: Path, golden: Golden) -> None:
    data = bytearray(Path(golden("h264.mp4")).read_bytes())
    middle = slice(len(data) * 30 // 100, len(data) * 35 // 100, 3)
    data[middle] = bytes(~byte & 0xFF for byte in data[middle])
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    source = opened(path)
    frames = [(read_number(frame.rgb()), frame.damaged or frame.gap_before) for frame in source]
    assert source.stats.damaged_packets > 0
    assert any(flagged for _, flagged in frames)
    assert frames[0] == (0, False)
    assert frames[-1] == (59, False)  # clean key frames follow the fault


def test_a_picture_that_cannot_be_decoded_is_a_gap(opened: Open, tmp_path: Path, golden: Golden) -> None:
    data = bytearray(Path(golden("odd.avi")).read_bytes())
    at = 0
    for _ in range(6):
        at = data.index(b"\xff\xd8\xff", at + 1)
    data[at : at + 1000] = bytes(1000)
    path = tmp_path / "hole.avi"
    path.write_bytes(data)
    source = opened(path)
    frames = [(read_number(frame.rgb()), frame.gap_before) for frame in source]
    assert frames == [(n, n == 6) for n in range(12) if n != 5]
    assert source.stats.damaged_packets == 1


def test_a_file_that_shrinks_while_it_is_read(opened: Open, tmp_path: Path) -> None:
    path = write_clip(
        tmp_path / "shrinking.mkv", frames=60, width=320, height=240, codec="mjpeg", pixel_format="yuvj420p"
    )
    source = opened(path)
    assert source.step() is not None
    with path.open("r+b") as file:
        file.truncate(1000)
    assert sum(1 for _ in source) < 59
    assert source.state == "ended"


@pytest.mark.parametrize("decoder", ["nvdec", "jetson"])
def test_hardware_that_does_not_decode_says_what_is_missing(opened: Open, golden: Golden, decoder: str) -> None:
    """Where it does decode, the film is the same."""
    fault = ""
    try:
        shown = [read_number(frame.rgb()) for frame in opened(golden("h264.mp4"), decoder=decoder)]
        assert shown == list(range(len(shown)))
    except EnvironmentFault as error:
        fault = str(error)
    assert not fault or re.search(r"(NVDEC|Jetson|PyAV).*\.$", fault)
