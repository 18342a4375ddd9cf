"""Small files in the layouts of RMBench, RoboDojo and LIBERO-Mem. Their pictures show their numbers."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from film_samples import SIZE, shoot
from PIL import Image

from compass_edge.frames.clip import clip_frame


def jpegs(frames: int, *, swapped: bool, first: int = 0) -> list[bytes]:
    """`swapped`: as OpenCV encodes an RGB array, taking it for BGR."""
    found = []
    for number in range(first, first + frames):
        picture, data = clip_frame(number, *SIZE), io.BytesIO()
        Image.fromarray(picture[..., ::-1] if swapped else picture).save(data, "JPEG", quality=95)
        found.append(data.getvalue())
    return found


def padded(texts: list[bytes]) -> np.ndarray[Any, Any]:
    longest = max(map(len, texts)) + 3
    return np.array([text.ljust(longest, b"\0") for text in texts], f"S{longest}")


def write_rmbench(
    root: Path,
    annotation: dict[str, Any] | None,
    frames: int,
    *,
    task: str = "press_button",
    number: int = 0,
    video: bool = False,
) -> Path:
    """Returns the folder of the setting."""
    setting = root / task / "demo_clean"
    (setting / "data").mkdir(parents=True, exist_ok=True)
    if video:
        shoot(setting / "video" / f"episode{number}.mp4", frames, 30)
    else:
        with h5py.File(setting / "data" / f"episode{number}.hdf5", "w") as file:
            pictures = padded(jpegs(frames, swapped=True))
            for camera in ("head_camera", "left_camera", "right_camera"):
                file.create_dataset(f"observation/{camera}/rgb", data=pictures)
            file.create_dataset("joint_action/vector", data=np.zeros((frames, 14)))
    if annotation is not None:
        (setting / "language_annotation.json").write_text(json.dumps(annotation))
    (setting / "instructions").mkdir(exist_ok=True)
    told = {"seen": ["Press as often as the numbers say."], "unseen": []}
    (setting / "instructions" / f"episode{number}.json").write_text(json.dumps(told))
    return setting


def press_annotation(left: int, middle: int, lengths: list[int]) -> list[list[Any]]:
    """Three primitives a press, all with one text, as RMBench's press_button writes them."""
    texts = ["Press the left button one time."] * 3 * left + ["Press the middle button one time."] * 3 * middle
    texts += ["Press the confirm button."] * 3
    return [[text, length] for text, length in zip(texts, lengths, strict=True)]


def write_robodojo(path: Path, frames: int, *, raw: bool = False, **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["data_format_version"] = "v1.0"
        file["additional_info/frequency"] = 25
        pictures: Any = padded(jpegs(frames, swapped=False))
        if raw:
            pictures = np.stack([clip_frame(number, *SIZE) for number in range(frames)])
        for camera in ("cam_head", "cam_left_wrist"):
            file[f"vision/{camera}/colors"] = pictures
        file["state/left_arm_joint_states"] = np.zeros((frames, 6))
        for key, value in more.items():
            file[key] = value
    return path


LIBERO_TASK = "KITCHEN_SCENE1_3_lift_the_bowl_and_place_it_back_on_the_plate_3_times"


def write_libero_mem(
    root: Path, ends: list[int], frames: int, *, idle: int = 5, flipped: bool = False, demo: str = "demo_0"
) -> Path:
    """The subgoal of the robot changes at `ends`. At every seventh frame only the wrist camera sees the robot."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{LIBERO_TASK}_demo.hdf5"
    pictures = np.stack([clip_frame(number, *SIZE) for number in range(frames)])
    actions = np.ones((frames, 7))
    actions[frames - idle :] = [0, 0, 0, 0, 0, 0, -1]
    with h5py.File(path, "a") as file:
        file[f"data/{demo}/actions"] = actions
        file[f"data/{demo}/obs/agentview_rgb"] = pictures[:, ::-1] if flipped else pictures
        file[f"data/{demo}/obs/eye_in_hand_rgb"] = pictures
    words = ("one", "two", "three", "four")
    exo: list[dict[str, Any]] = []
    ego: list[dict[str, Any]] = []
    for number in range(frames):
        done = sum(end <= number for end in ends)
        tag = "0" if not done else f"{words[done - 1]}: bowl 1 on plate 1"
        seen = {"plate 1": [20, [0.1, 0.1, 0.2, 0.2], 0]}
        robot = {"robot": [10, [0.4, 0.4, 0.1, 0.1], tag]}
        exo.append(seen if number % 7 == 0 else {**robot, **seen})
        ego.append(dict(robot))
    told = {"task_nouns": ["bowl"], "task_description": "lift the bowl and place it back on the plate 3 times"}
    meta = root / "metainfo.json"
    demos = json.loads(meta.read_text())[LIBERO_TASK] if meta.is_file() else {}
    demos[demo] = {**told, "success": True, "exo_boxes": exo, "ego_boxes": ego}
    meta.write_text(json.dumps({LIBERO_TASK: demos}))
    return path
