"""What a decoder remembers: rows of keys and values or recurrent states, allocated once for the longest sequence."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Decoder

# A row's recurrent states at one place in its sequence.
Snapshot: TypeAlias = dict[str, NDArray[np.float32]]


class Memory:
    """Buffers by the names that the graph has for them, without "past.". A row is one sequence."""

    def __init__(self, decoder: Decoder, rows: int, context: int, half: bool) -> None:
        self.rows, self.context = rows, context
        self.cache: dict[str, NDArray[Any]] = {}
        self.states: dict[str, NDArray[np.float32]] = {}
        for layer, mixer in enumerate(decoder.mixers):
            if mixer == "attention":
                shape = (rows, decoder.kv_heads, context, decoder.head)
                for kind in ("key", "value"):
                    self.cache[f"{layer}.{kind}"] = np.zeros(shape, np.float16 if half else np.float32)
            else:
                delta = decoder.delta
                assert delta is not None
                self.states[f"{layer}.window"] = np.zeros((rows, delta.kernel - 1, delta.channels), np.float32)
                self.states[f"{layer}.state"] = np.zeros((rows, delta.value_heads, delta.key, delta.value), np.float32)

    @property
    def recurrent(self) -> bool:
        return bool(self.states)

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for buffer in (*self.cache.values(), *self.states.values()))

    @property
    def snapshot_bytes(self) -> int:
        return sum(buffer[0].nbytes for buffer in self.states.values())

    def copy(self, source: int, target: int, length: int) -> None:
        """Keys and values of the first tokens."""
        if source != target:
            for cached in self.cache.values():
                cached[target, :, :length] = cached[source, :, :length]

    def clear(self, row: int) -> None:
        """To the beginning of a sequence. Keys and values beyond a row's length are never looked at."""
        for state in self.states.values():
            state[row] = 0

    def snapshot(self, row: int) -> Snapshot:
        return {name: state[row].copy() for name, state in self.states.items()}

    def restore(self, row: int, snapshot: Snapshot) -> None:
        for name, state in snapshot.items():
            self.states[name][row] = state
