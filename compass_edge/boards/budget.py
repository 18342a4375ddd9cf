"""A memory budget: what an arrangement takes, line by line, before anything of it is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compass_edge.boards.board import Board
from compass_edge.boards.number_format import find_format
from compass_edge.boards.part import ENGINES, FRAME_TOKENS, Arrangement, Engine, Part

_PATCHES = 4 * FRAME_TOKENS
# What an engine takes besides what is computed here: CUDA's context, code, workspaces. NVIDIA's published memory of Edge-LLM on
# Orin is met within a tenth by 0.8 GB; the others are guesses of ours.
RUNTIME: dict[Engine, int] = {
    "edgellm": 800_000_000,
    "server": 1_000_000_000,
    "tensorrt": 500_000_000,
    "onnx": 200_000_000,
}


@dataclass(frozen=True, slots=True)
class Line:
    part: str
    what: str
    how: str  # the arithmetic
    bytes: int
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    board: Board
    arrangement: Arrangement
    lines: tuple[Line, ...]

    @property
    def need(self) -> int:
        return sum(line.bytes for line in self.lines)

    @property
    def spare(self) -> int:
        """Of the board as it is sold, less its system's share; negative if it does not fit."""
        return self.board.usable - self.need

    @property
    def fits(self) -> bool:
        return self.spare >= 0

    def need_of(self, parts: Sequence[Part]) -> int:
        titles = {part.title for part in parts}
        return sum(line.bytes for line in self.lines if line.part in titles)


def budget_of(board: Board, arrangement: Arrangement) -> Budget:
    return Budget(board, arrangement, tuple(line for part in arrangement.parts for line in _lines(part, board)))


def _lines(part: Part, board: Board) -> Iterator[Line]:
    yield from _weights(part, on_host=not board.unified and part.engine == "tensorrt")
    yield from _memory(part)
    yield from _work(part)


def features_bytes(part: Part) -> int:
    """Of the frames that it keeps: what the tower gives, once for the decoder's input and once for each tap."""
    values = part.limits.frames * FRAME_TOKENS * part.shape.hidden * (1 + part.shape.vision.taps)
    return find_format(part.formats.cache).bytes(values)


def _weights(part: Part, *, on_host: bool) -> Iterator[Line]:
    """`on_host`: words are looked up there, and their table is not in the card's memory."""
    shape, formats = part.shape, part.formats
    unsure = shape.estimated
    decoder = find_format(formats.decoder)
    count = shape.matrices(mtp=part.mtp)
    draft = ", the draft layer's among them" if part.mtp else ""
    told = f"{count:,} weights{draft} x {decoder.bits} bits"
    yield Line(part.title, "decoder", told, decoder.weights(count), unsure)
    if decoder.block:
        told = f"one of {decoder.scale_bits} bits for {decoder.block} weights"
        yield Line(part.title, "scales", told, decoder.scales(count), unsure)
    rest = shape.rest(mtp=part.mtp)
    width = find_format(formats.cache)
    yield Line(part.title, "norms and gates", f"{rest:,} x {width.bits} bits", width.bytes(rest), unsure)
    words = find_format(formats.embedding)
    table = f"{shape.vocabulary:,} words x {shape.hidden:,}"
    if not on_host:
        yield Line(part.title, "embeddings", f"{table} x {words.bits} bits", words.bytes(shape.words), unsure)
    if shape.read_outs:
        count = shape.read_out_weights
        yield Line(part.title, "heads", f"{count:,} x {width.bits} bits", width.bytes(count), unsure)
    else:
        # Tied or not: the table that is looked up and the matrix that is multiplied are kept apart by all these engines.
        head = find_format(formats.head)
        told = f"{table} x {head.bits} bits" + (f", a scale for {head.block}" if head.block else "")
        yield Line(part.title, "output layer", told, head.bytes(shape.words), unsure)
    vision = find_format(formats.vision)
    count = shape.vision.parameters
    yield Line(part.title, "vision tower", f"{count:,} x {vision.bits} bits", vision.bytes(count), unsure)


def _memory(part: Part) -> Iterator[Line]:
    shape, limits = part.shape, part.limits
    cache = find_format(part.formats.cache)
    if limits.rows:
        values = shape.kv_values(mtp=part.mtp)
        layers = shape.attention_layers + (1 if part.mtp else 0)
        told = (
            f"{layers} layers x 2 x {shape.kv_heads} heads x {shape.head} x {limits.context:,} tokens x {limits.rows} "
            f"sequence{'s' if limits.rows > 1 else ''} x {cache.bits} bits"
        )
        count = values * limits.context * limits.rows
        yield Line(part.title, "keys and values", told, cache.bytes(count), shape.estimated)
    if limits.rows and shape.state_values:
        # fp32 whatever the rest is: the recurrence adds up its rounding.
        count = shape.state_values * limits.rows
        told = f"{shape.delta_layers} layers, {count:,} x 32 bits"
        yield Line(part.title, "recurrent states", told, 4 * count, shape.estimated)
    if limits.snapshots:
        told = "recurrent states along a prompt, as many as fit"
        yield Line(part.title, "snapshots", told, limits.snapshots)
    if limits.frames:
        copies = 1 + shape.vision.taps
        told = f"{limits.frames} frames x {FRAME_TOKENS} tokens x {shape.hidden:,} x {copies} x {cache.bits} bits"
        yield Line(part.title, "features of frames", told, features_bytes(part), shape.estimated)


def _work(part: Part) -> Iterator[Line]:
    shape, limits = part.shape, part.limits
    cache = find_format(part.formats.cache)
    # One layer is alive at a time: its input and output, both halves of the MLP, the query with what it becomes.
    width = 4 * shape.hidden + 2 * shape.mlp + 2 * shape.query
    told = f"{limits.prompt:,} tokens x {width:,} of the widest layer x {cache.bits} bits"
    yield Line(part.title, "activations", told, cache.bytes(limits.prompt * width), True)
    if part.engine in ("tensorrt", "onnx"):
        # Edge-LLM's plugin never writes them down; a plain graph may.
        told = f"{shape.heads} heads x {limits.prompt:,} x {limits.prompt:,} x {cache.bits} bits"
        yield Line(part.title, "attention scores", told, cache.bytes(shape.heads * limits.prompt**2), True)
    vision = shape.vision
    width = 8 * vision.hidden + vision.mlp
    told = f"{limits.pictures} x {_PATCHES:,} patches x {width:,} x {cache.bits} bits"
    yield Line(part.title, "tower's activations", told, cache.bytes(limits.pictures * _PATCHES * width), True)
    yield Line(
        part.title, "runtime", f"of {ENGINES[part.engine]}: context, code, workspaces", RUNTIME[part.engine], True
    )
