"""The decoder: embeddings behind what a row remembers already, to what its head gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.architecture import Decoder as Numbers
from compass_edge.engines.onnx.memory import Memory
from compass_edge.engines.onnx.session import Options, open_session

Outputs: TypeAlias = dict[str, NDArray[Any]]


class Decoder:
    """Past and present are one buffer: a pass reads a row's memory and writes the new tokens behind it, without a copy."""

    def __init__(self, folder: Path, numbers: Numbers, options: Options, *, rows: int) -> None:
        self.numbers = numbers
        self._session = open_session(folder / "decoder.onnx", options)
        inputs = {value.name: value for value in self._session.get_inputs()}
        self.floats = np.dtype(np.float16 if "16" in inputs["embeddings"].type else np.float32)
        self._outputs = [value.name for value in self._session.get_outputs()]
        self._widths = {
            value.name: value.shape[2:]
            for value in self._session.get_outputs()
            if not value.name.startswith(("present.", "new."))
        }
        self._in_place = not any(name.startswith("new.") for name in self._outputs)
        self.cached = "past_lengths" in inputs  # else each pass reads a whole sequence, and nothing is remembered
        self.memory = Memory(numbers, rows if self.cached else 0, options.context, self.floats == np.float16)
        self._steps: dict[tuple[int, int], _Step] = {}
        self.passes = 0
        self.tokens = 0  # that were read, whatever they were

    def run(
        self,
        row: int,
        lengths: Sequence[int],
        embeddings: NDArray[Any],
        positions: NDArray[np.int64],
        wanted: NDArray[np.int64],
        taps: NDArray[Any] | None = None,
    ) -> Outputs:
        """Rows `row` and following, as many as `lengths`: how much each remembers. What comes back is valid until the
        next pass.

        embeddings [B, S, hidden], positions [3, B, S], wanted [B, N] places among the S, taps [taps, B, S, hidden].
        Several tokens behind a past: one row at a time.
        """
        count, new = embeddings.shape[:2]
        longest = self.numbers.longest
        if longest and new > longest:
            return self._in_pieces(row, lengths, embeddings, positions, wanted, taps)
        self.passes += 1
        self.tokens += count * new
        if self._in_place and new == 1 and wanted.shape[1] == 1:
            step = self._steps.get((row, count))
            if step is None:
                step = self._steps[row, count] = _Step(self, row, count)
            return step.run(lengths, embeddings, positions, taps)
        feeds = self._feeds(lengths, embeddings, positions, wanted, taps)
        if self._in_place:
            return self._bound(row, count, feeds)
        return self._copied(row, lengths, feeds)

    def run_whole(
        self,
        embeddings: NDArray[Any],
        positions: NDArray[np.int64],
        wanted: NDArray[np.int64],
        taps: NDArray[Any] | None = None,
    ) -> Outputs:
        """Whole sequences, with a graph that has no memory. Shorter ones may be padded behind their end."""
        self.passes += 1
        self.tokens += embeddings.shape[0] * embeddings.shape[1]
        feeds = self._feeds(None, embeddings, positions, wanted, taps)
        return dict(zip(self._outputs, self._session.run(self._outputs, feeds), strict=True))

    def _feeds(
        self,
        lengths: Sequence[int] | None,
        embeddings: NDArray[Any],
        positions: NDArray[np.int64],
        wanted: NDArray[np.int64],
        taps: NDArray[Any] | None,
    ) -> dict[str, NDArray[Any]]:
        feeds: dict[str, NDArray[Any]] = {
            "embeddings": np.ascontiguousarray(embeddings, self.floats),
            "positions": np.ascontiguousarray(positions, np.int64),
            "wanted": np.ascontiguousarray(wanted, np.int64),
        }
        if lengths is not None:
            feeds["past_lengths"] = np.array(lengths, np.int64)
        if self.numbers.taps:
            shape = (self.numbers.taps, *embeddings.shape)
            feeds["taps"] = np.zeros(shape, self.floats) if taps is None else np.ascontiguousarray(taps, self.floats)
        return feeds

    def _bound(self, row: int, count: int, feeds: dict[str, NDArray[Any]]) -> Outputs:
        binding = self._session.io_binding()
        for name, value in feeds.items():
            _bind_input(binding, name, value)
        self.bind_memory(binding, row, count)
        results = self._results(count, feeds["wanted"].shape[1])
        for name, value in results.items():
            _bind_output(binding, name, value)
        self._session.run_with_iobinding(binding)
        return results

    def bind_memory(self, binding: Any, row: int, count: int) -> None:
        for name, buffer in (*self.memory.cache.items(), *self.memory.states.items()):
            rows = buffer[row : row + count]
            _bind_input(binding, f"past.{name}", rows)
            _bind_output(binding, f"present.{name}", rows)

    def _results(self, count: int, wanted: int) -> Outputs:
        return {name: np.empty((count, wanted, *width), np.float32) for name, width in self._widths.items()}

    def _copied(self, row: int, lengths: Sequence[int], feeds: dict[str, NDArray[Any]]) -> Outputs:
        """Plain ONNX gives the new keys and values alone; they are put in their places here."""
        rows = slice(row, row + len(lengths))
        past = {
            f"past.{name}": buffer[rows] for name, buffer in (*self.memory.cache.items(), *self.memory.states.items())
        }
        outputs = dict(zip(self._outputs, self._session.run(self._outputs, {**feeds, **past}), strict=True))
        for name, buffer in self.memory.cache.items():
            new = outputs.pop(f"new.{name}")
            for at, length in enumerate(lengths):
                buffer[row + at, :, length : length + new.shape[2]] = new[at]
        for name, state in self.memory.states.items():
            state[rows] = outputs.pop(f"present.{name}")
        return outputs

    def _in_pieces(
        self,
        row: int,
        lengths: Sequence[int],
        embeddings: NDArray[Any],
        positions: NDArray[np.int64],
        wanted: NDArray[np.int64],
        taps: NDArray[Any] | None,
    ) -> Outputs:
        """For a graph that takes a limited run of tokens."""
        step, new = self.numbers.longest, embeddings.shape[1]
        results = self._results(embeddings.shape[0], wanted.shape[1])
        for start in range(0, new, step):
            part = slice(start, min(start + step, new))
            inside = np.clip(wanted - start, 0, part.stop - start - 1)
            made = self.run(
                row,
                [length + start for length in lengths],
                embeddings[:, part],
                positions[:, :, part],
                inside,
                None if taps is None else taps[:, :, part],
            )
            here = (wanted >= start) & (wanted < part.stop)
            for name, value in made.items():
                results[name][here] = value[here]
        return results


class _Step:
    """One token for each of some rows: everything is bound once, and a step only fills in its numbers."""

    def __init__(self, decoder: Decoder, row: int, count: int) -> None:
        numbers = decoder.numbers
        self._session = decoder._session
        wanted = np.zeros((count, 1), np.int64)
        self._feeds = decoder._feeds(
            [0] * count, np.zeros((count, 1, numbers.hidden)), np.zeros((3, count, 1), np.int64), wanted, None
        )
        self._results = decoder._results(count, 1)
        self._binding = self._session.io_binding()
        for name, value in self._feeds.items():
            _bind_input(self._binding, name, value)
        decoder.bind_memory(self._binding, row, count)
        for name, value in self._results.items():
            _bind_output(self._binding, name, value)

    def run(
        self,
        lengths: Sequence[int],
        embeddings: NDArray[Any],
        positions: NDArray[np.int64],
        taps: NDArray[Any] | None,
    ) -> Outputs:
        feeds = self._feeds
        feeds["embeddings"][...] = embeddings
        feeds["positions"][...] = positions
        feeds["past_lengths"][...] = lengths
        if "taps" in feeds:
            feeds["taps"][...] = 0 if taps is None else taps
        self._session.run_with_iobinding(self._binding)
        return self._results


def _bind_input(binding: Any, name: str, value: NDArray[Any]) -> None:
    binding.bind_input(name, "cpu", 0, value.dtype, value.shape, value.ctypes.data)


def _bind_output(binding: Any, name: str, value: NDArray[Any]) -> None:
    binding.bind_output(name, "cpu", 0, value.dtype, value.shape, value.ctypes.data)
