"""What a body does on its device, before it does it: which buffers, how large, what goes where in which order. Pure.

Buffers are as large as the profile's maximum and are named as the engines' tensors, behind the name of the part. The
features of frames lie in slots, one a frame, each as large as the largest frame's: [tokens, hidden], then the taps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compass_edge.engines.engine_record import DTYPES, EngineRecord, Tensor
from compass_edge.errors import UsageError

FEATURES = "features"  # the buffer of the slots
_STEP = 64  # tokens: sequences are padded to a multiple, so that few shapes occur and each can be recorded
_ALIGNMENT = 256  # bytes: what a GPU wants an address to be a multiple of


@dataclass(frozen=True, slots=True)
class Memory:
    """All that is ever allocated, in bytes."""

    buffers: Mapping[str, int]  # on the device
    staging: Mapping[str, int]  # pinned, on the host

    @property
    def bytes(self) -> int:
        return sum(self.buffers.values())


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of an engine. Equal ones may be recorded once and replayed."""

    part: str
    axes: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, part: str, **axes: int) -> Pass:
        return cls(part, tuple(sorted(axes.items())))


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes from one place to another. `upload`: from staging; `copy`: on the device."""

    kind: Literal["upload", "copy", "clear"]
    source: str
    start: int
    target: str
    to: int
    count: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture of a prompt: where it is in the sequence, and in which slot its features are."""

    start: int
    tokens: int
    slot: int


class Plan:
    """Of the two engines of a reward model, by their records in the manifest."""

    def __init__(self, vision: EngineRecord, decoder: EngineRecord, merge: int, slots_bytes: int) -> None:
        self.records = {"vision": vision, "decoder": decoder}
        self._merge = merge**2
        features, embeddings = self._tensor("vision", "features"), self._tensor("decoder", "embeddings")
        self.taps = int(self._tensor("decoder", "taps").shape[0]) if "taps" in decoder.tensors else 0
        self.dtype = embeddings.dtype
        self._token = int(embeddings.shape[-1]) * DTYPES[embeddings.dtype]  # bytes
        if features.dtype != embeddings.dtype:
            raise UsageError(
                f"The tower gives {features.dtype} and the decoder reads {embeddings.dtype}; features stay on the device, where nothing "
                "converts them. Export both with half floats (--vision fp16 --precision fp16 or int4-fp16), or both without."
            )
        self.frames, self.patches = vision.most["F"], vision.most["P"]
        self.batch, self.tokens, self.wanted = (decoder.most[axis] for axis in ("B", "S", "N"))
        self._frame_tokens = self.patches // self._merge
        self._slot = _aligned((1 + self.taps) * self._frame_tokens * self._token)
        # A batch whose frames are all different must find room, whatever was asked for.
        self.slots = max(slots_bytes // self._slot, self.batch * max(self.frames, 2))

    def _tensor(self, part: str, name: str) -> Tensor:
        return self.records[part].tensors[name]

    def memory(self) -> Memory:
        buffers = {
            f"{part}.{name}": _aligned(tensor.bytes(self._most(part)))
            for part, record in self.records.items()
            for name, tensor in record.tensors.items()
        }
        staging = dict(buffers)
        if self.taps:  # of a prompt they are zeros and what the tower gave: both are on the device already
            del staging["decoder.taps"], staging["vision.taps"]
        return Memory({**buffers, FEATURES: self.slots * self._slot}, staging)

    def _most(self, part: str) -> dict[str, int]:
        return self.records[part].most

    # The tower

    def tower(self, frames: int, patches: int) -> Pass:
        if patches > self.patches:
            raise UsageError(
                f"A picture of {patches} patches came, and the engine was built for {self.patches} at most. Send smaller ones, or build "
                "it for larger ones (--frame WIDTHxHEIGHT)."
            )
        return Pass.of("vision", F=frames, P=patches, M=patches // self._merge)

    def kept(self, run: Pass, slots: Sequence[int]) -> list[Move]:
        """What the tower has given, frame by frame, into the slots."""
        axes = dict(run.axes)
        frame = axes["M"] * self._token
        moves = []
        for at, slot in enumerate(slots):
            moves.append(Move("copy", "vision.features", at * frame, FEATURES, slot * self._slot, frame))
            for tap in range(self.taps):
                moves.append(
                    Move(
                        "copy",
                        "vision.taps",
                        (tap * axes["F"] + at) * frame,
                        FEATURES,
                        self._at(slot, 1 + tap),
                        frame,
                    )
                )
        return moves

    def features_at(self, slot: int, tokens: int) -> tuple[int, int]:
        """Where a frame's embeddings are among the slots, and how many bytes they are."""
        return slot * self._slot, tokens * self._token

    def _at(self, slot: int, layer: int) -> int:
        return slot * self._slot + layer * self._frame_tokens * self._token

    # The prefill

    def prefill(self, lengths: Sequence[int], wanted: int) -> Pass:
        """As few shapes as can be: lengths in steps, places in powers of two."""
        longest = max(lengths)
        if longest > self.tokens:
            raise UsageError(
                f"A prompt of {longest} tokens came, and the engine was built for {self.tokens} at most. Send fewer or smaller pictures, or "
                "build it for more (--frames, --frame, --words)."
            )
        if wanted > self.wanted:
            raise UsageError(
                f"Scores at {wanted} places of a prompt were asked for, and the engine was built for {self.wanted} at most. Build it for "
                "more frames (--frames), or ask for fewer."
            )
        padded = min(-(-longest // _STEP) * _STEP, self.tokens)
        places = min(1 << (wanted - 1).bit_length(), self.wanted)
        return Pass.of("decoder", B=len(lengths), S=padded, N=places)

    def filled(self, run: Pass, lengths: Sequence[int], pictures: Sequence[Sequence[Placed]]) -> list[Move]:
        """Embeddings and taps of each sequence: words from staging, pictures from their slots, zeros for the taps of words.
        What is behind a sequence's end is looked at by nobody, and cleared so that it holds numbers.
        """
        axes = dict(run.axes)
        row = axes["S"] * self._token
        moves = []
        if self.taps:
            moves.append(Move("clear", "", 0, "decoder.taps", 0, self.taps * axes["B"] * row))
        for at, (length, placed) in enumerate(zip(lengths, pictures, strict=True)):
            begin = 0
            for picture in (*placed, None):
                end = length if picture is None else picture.start
                if end > begin:
                    start = at * row + begin * self._token
                    size = (end - begin) * self._token
                    moves.append(Move("upload", "decoder.embeddings", start, "decoder.embeddings", start, size))
                if picture is None:
                    break
                moves += self._picture(axes, at, picture)
                begin = picture.start + picture.tokens
            if length < axes["S"]:
                start = at * row + length * self._token
                moves.append(Move("clear", "", 0, "decoder.embeddings", start, row - length * self._token))
        return moves

    def _picture(self, axes: Mapping[str, int], at: int, picture: Placed) -> list[Move]:
        row, inside, size = axes["S"] * self._token, picture.start * self._token, picture.tokens * self._token
        places = [("decoder.embeddings", at * row + inside)]
        places += [("decoder.taps", (tap * axes["B"] + at) * row + inside) for tap in range(self.taps)]
        return [
            Move("copy", FEATURES, self._at(picture.slot, layer), target, to, size)
            for layer, (target, to) in enumerate(places)
        ]


def _aligned(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT
