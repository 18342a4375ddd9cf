"""A reward model on TensorRT's engines: frames through the tower into slots on the device, prompts through one prefill.

What a frame becomes never leaves the device: from its slot it is copied to where the prompt has it. Only frames as they were
decoded (or patches, where the device does not make them), words and positions go up, and only scores come down. Implements ScoringBody, so that RoboMeter runs on it as on any other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Architecture
from compass_edge.engines.engine_record import EngineRecord
from compass_edge.engines.manifest import Manifest
from compass_edge.engines.onnx.embedding import Embedding
from compass_edge.engines.onnx.patcher import Patcher
from compass_edge.engines.onnx.prompt import Prompt
from compass_edge.engines.onnx.prompter import Prompter
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.tensorrt.device import Device
from compass_edge.engines.tensorrt.plan import FEATURES, Move, Pass, Placed, Plan
from compass_edge.engines.tensorrt.slots import Slots
from compass_edge.frames.native import native
from compass_edge.models import Image

_RECORDINGS = 16  # shapes that are replayed; further ones are run kernel by kernel


class TensorRtBody:
    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        records: Mapping[str, EngineRecord],
        device: Device,
        options: Options | None = None,
    ) -> None:
        """The device knows the engines of the `records`, which are one a part."""
        options = options or Options()
        self.manifest, self.lock = manifest, threading.Lock()
        architecture = Architecture.from_dict(manifest.architecture)
        self.tokens = architecture.tokens
        self._merge = architecture.tower.merge
        self.plan = Plan(records["vision"], records["decoder"], self._merge, options.vision_bytes)
        half = records["vision"].tensors["patches"].dtype == "float16"
        self._patcher = Patcher(folder, manifest, architecture.tower, half=half)
        self._prompter = Prompter(folder, manifest, self.tokens, self._patcher.grid)
        self.prompt = self._prompter.prompt
        self._embedding = Embedding(folder, replace(options, device="cpu"))
        self._device = device
        self._staging = device.open(self.plan.memory())
        self._patches_there = device.open_patcher(self._patcher.settings)
        self._slots = Slots(self.plan.slots)
        self._grid = (0, 0)  # whose places the device has
        self._seen: OrderedDict[Pass, bool] = OrderedDict()  # shapes that were run, and whether they are recorded
        self._pending = False  # whether patches are still on their way up
        self._name = manifest.run_by(device.name, records)
        self.passes = 0  # frames that went through the tower
        self.prefills = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def max_batch(self) -> int:
        return self.plan.batch

    @property
    def remembers(self) -> bool:
        return False

    def close(self) -> None:
        self._device.close()

    def forget(self) -> None:
        self._slots.clear()
        self.passes = self.prefills = 0

    # Frames

    def prepare(self, images: Sequence[Image]) -> None:
        for start in range(0, len(images), self.plan.frames):
            some = images[start : start + self.plan.frames]
            if sum(self._slots.get(self._key(image)) is None for image in some) > self._slots.free:
                return
            self._encode(some)

    def encoded(self, image: Image) -> NDArray[Any]:
        self._encode([image])
        rows, columns = self._patcher.grid(image)
        slot = self._slots.get(self._key(image))
        assert slot is not None
        start, count = self.plan.features_at(slot, rows * columns)
        self._device.download(FEATURES, start, "vision.features", 0, count)
        self._device.finish()
        self._pending = False
        found = self._staging["vision.features"][:count].view(self.plan.dtype)
        return np.array(found.reshape(rows * columns, -1))

    def _key(self, image: Image) -> str:
        rows, columns = self._patcher.grid(image)
        return f"{rows}x{columns} {image.digest}"

    def _encode(self, images: Iterable[Image]) -> None:
        """Those that are in no slot. All of them stay there until others are encoded."""
        groups: dict[tuple[int, int], dict[str, Image]] = {}
        keys = {self._key(image): image for image in images}
        self._slots.use(keys)
        for key, image in keys.items():
            if self._slots.get(key) is None:
                groups.setdefault(self._patcher.grid(image), {})[key] = image
        for (rows, columns), group in groups.items():
            names = list(group)
            for start in range(0, len(names), self.plan.frames):
                some = {name: group[name] for name in names[start : start + self.plan.frames]}
                self._tower(some, rows * self._merge, columns * self._merge)

    def _tower(self, images: Mapping[str, Image], rows: int, columns: int) -> None:
        """Of a grid of rows x columns patches."""
        run = self.plan.tower(len(images), rows * columns)
        self._settle()
        # Frames are patched where the tower is; arrays, which no ring holds, on the host.
        there = self._patches_there and all(isinstance(image.pixels, native().Frame) for image in images.values())
        sent = [] if there else ["patches"]
        if not there:
            patches = self._stage(run, "patches")
            for at, image in enumerate(images.values()):
                patches[at] = self._patcher.run(image)
        if (rows, columns) != self._grid:
            for name, values in self._patcher.places(rows, columns).items():
                self._stage(run, name)[...] = values
                sent.append(name)
        slots: list[int] = []
        try:
            slots.extend(self._slots.take() for _ in images)
            self._grid = (0, 0)
            self._send(run, sent)
            self._grid = (rows, columns)
            if there:
                self._patch(run, images.values())
            self._run(run)
            self._move(self.plan.kept(run, slots))
        except BaseException:
            self._slots.give_back(slots)
            raise
        for key, slot in zip(images, slots, strict=True):
            self._slots.put(key, slot)
        self.passes += len(images)

    def _patch(self, run: Pass, images: Iterable[Image]) -> None:
        whole = self.plan.records["vision"].tensors["patches"].bytes(dict(run.axes))
        size = whole // dict(run.axes)["F"]
        for at, image in enumerate(images):
            self._device.patch(image.pixels, "vision.patches", at * size, size)

    def _settle(self) -> None:
        """Patches are read from staging while the host goes on: they must be up before others take their place."""
        if self._pending:
            self._device.finish()
        self._pending = True

    # Prompts

    def read_each(self, prompts: Sequence[Prompt], wanted: Sequence[Sequence[int]]) -> list[dict[str, NDArray[Any]]]:
        made: list[dict[str, NDArray[Any]]] = []
        for start in range(0, len(prompts), self.plan.batch):
            some = slice(start, start + self.plan.batch)
            made += self._prefill(prompts[some], wanted[some])
        return made

    def _prefill(self, prompts: Sequence[Prompt], wanted: Sequence[Sequence[int]]) -> list[dict[str, NDArray[Any]]]:
        run = self.plan.prefill([len(prompt) for prompt in prompts], max(map(len, wanted)))
        self._encode(picture.image for prompt in prompts for picture in prompt.pictures)
        words, positions, places = (self._stage(run, name) for name in ("embeddings", "positions", "wanted"))
        positions[...], places[...] = 0, 0
        for at, (prompt, some) in enumerate(zip(prompts, wanted, strict=True)):
            said = np.ones(len(prompt), bool)
            for picture in prompt.pictures:
                said[picture.start : picture.end] = False
            words[at, : len(prompt)][said] = self._embedding.run(prompt.ids[said])
            positions[:, at, : len(prompt)] = prompt.positions
            places[at, : len(some)] = some
        self._send(run, ["positions", "wanted"])
        self._move(self.plan.filled(run, [len(prompt) for prompt in prompts], [self._placed(one) for one in prompts]))
        self._run(run)
        self.prefills += 1
        return self._scores(run, wanted)

    def _placed(self, prompt: Prompt) -> list[Placed]:
        placed = []
        for picture in prompt.pictures:
            slot = self._slots.get(self._key(picture.image))
            assert slot is not None
            placed.append(Placed(picture.start, picture.tokens, slot))
        return placed

    def _scores(self, run: Pass, wanted: Sequence[Sequence[int]]) -> list[dict[str, NDArray[Any]]]:
        tensors = self.plan.records["decoder"].tensors
        names = [name for name, tensor in tensors.items() if not tensor.given]
        for name in names:
            count = tensors[name].bytes(dict(run.axes))
            self._device.download(f"decoder.{name}", 0, f"decoder.{name}", 0, count)
        self._device.finish()
        self._pending = False
        found = {name: self._stage(run, name) for name in names}
        return [
            {name: values[at, : len(some)].copy() for name, values in found.items()} for at, some in enumerate(wanted)
        ]

    # The device

    def _stage(self, run: Pass, name: str) -> NDArray[Any]:
        """The staging area of a tensor, in the shape that it has in this pass."""
        tensor = self.plan.records[run.part].tensors[name]
        axes = dict(run.axes)
        area = self._staging[f"{run.part}.{name}"][: tensor.bytes(axes)]
        return area.view(tensor.dtype).reshape(tensor.sized(axes))

    def _send(self, run: Pass, names: Iterable[str]) -> None:
        tensors, axes = self.plan.records[run.part].tensors, dict(run.axes)
        for name in names:
            place = f"{run.part}.{name}"
            self._device.upload(place, 0, place, 0, tensors[name].bytes(axes))

    def _move(self, moves: Iterable[Move]) -> None:
        device = self._device
        for move in moves:
            if move.kind == "clear":
                device.clear(move.target, move.to, move.count)
            elif move.kind == "upload":
                device.upload(move.source, move.start, move.target, move.to, move.count)
            else:
                device.copy(move.source, move.start, move.target, move.to, move.count)

    def _run(self, run: Pass) -> None:
        """A shape that comes again is recorded: the first time TensorRT still has to settle, and some never come again."""
        recorded = self._seen.pop(run, None)
        if recorded:
            self._device.replay(run)
        elif recorded is None:
            self._device.execute(run)
        else:
            self._device.record(run)
        self._seen[run] = recorded is not None
        while len(self._seen) > _RECORDINGS:
            oldest, was_recorded = self._seen.popitem(last=False)
            if was_recorded:
                self._device.drop(oldest)
