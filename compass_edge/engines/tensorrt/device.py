"""What the body needs of a GPU. Everything that it decides is in the plan; a device only does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from compass_edge.engines.tensorrt.plan import Memory, Pass


class Device(Protocol):
    """One lane: all of it happens in the order in which it was asked for, on a stream of its own, beside whatever else the
    GPU does. Nothing but `finish` waits. Addresses never change after `open`.
    """

    @property
    def name(self) -> str:
        """Changes with anything that changes what the engines compute."""

    def open(self, memory: Memory) -> Mapping[str, NDArray[Any]]:
        """Allocates all that will ever be needed, and gives the staging areas: host memory that the GPU reaches, as bytes."""

    def upload(self, staging: str, start: int, buffer: str, to: int, count: int) -> None:
        """Bytes of a staging area to a buffer of the device."""

    def open_patcher(self, settings: Mapping[str, Any]) -> bool:
        """Whether it makes patches itself, of frames and by these settings of the preprocessing."""

    def patch(self, frame: Any, buffer: str, to: int, count: int) -> None:
        """The patches of a frame into a buffer. The frame is held until it has been read."""

    def download(self, buffer: str, start: int, staging: str, to: int, count: int) -> None: ...

    def copy(self, source: str, start: int, target: str, to: int, count: int) -> None:
        """From one buffer of the device to another."""

    def clear(self, buffer: str, start: int, count: int) -> None:
        """To zeros."""

    def execute(self, run: Pass) -> None:
        """An engine, with the tensors of the pass at the beginning of the buffers of their names."""

    def record(self, run: Pass) -> None:
        """The same, once, and so that `replay` does it again without telling the GPU of every kernel."""

    def replay(self, run: Pass) -> None: ...

    def drop(self, run: Pass) -> None:
        """A recording that will not be replayed."""

    def finish(self) -> None:
        """Waits until all of it is done."""

    def close(self) -> None: ...
