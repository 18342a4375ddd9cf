"""One graph to one engine, over the nvinfer API that both flavours of TensorRT have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compass_edge.engines.engine_record import DTYPES, Span, Tensor
from compass_edge.engines.tensorrt.library import Library, Log
from compass_edge.engines.tensorrt.target import Target
from compass_edge.errors import CompassError, UsageError
from compass_edge.export.tensorrt.profile import span

# What is being done, how many of its steps are done, how many it has.
OnStep = Callable[[str, int, int], None]
# TensorRT keeps the names of the inputs' axes alone: those of the outputs, in their order.
_GIVEN_BACK = {"vision": ("F", "M"), "decoder": ("B", "N")}
_NAMES = {"FLOAT": "float32", "HALF": "float16", "INT64": "int64"}


class Network:
    """A graph that TensorRT has read. Whoever keeps it keeps what it was read with."""

    def __init__(self, library: Library, path: Path) -> None:
        self._library, self._path = library, path
        self._log = Log(library)
        api = library.api
        self._builder: Any = api.Builder(self._log.logger)
        # The graph's own types and no others: precision is the exporter's to choose. TensorRT 11 knows nothing else.
        typed = getattr(api.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
        self._network: Any = self._builder.create_network(0 if typed is None else 1 << int(typed))
        parser: Any = api.OnnxParser(self._network, self._log.logger)
        if not parser.parse_from_file(str(path)):
            raise UsageError(self._refusal(parser))
        self._parser = parser  # weights that it read stay with it

    def _refusal(self, parser: Any) -> str:
        """The first node that it stumbled over; the others often follow from it."""
        library, reason, place = self._library, self._log.last, ""
        if parser.num_errors:
            error = parser.get_error(0)
            reason = " ".join(str(error.desc()).split())
            place = f" at the node '{error.node_name()}', an operator {error.node_operator()}"
        return (
            f"{library.flavour} {library.version} does not take '{self._path}'{place}: {reason.rstrip('.')}. Graphs of `compass-edge "
            "models export --dialect standard` are what it takes; if this is one, please report the node."
        )

    def tensors(self, part: str) -> dict[str, Tensor]:
        """Inputs, then outputs. Axes of any length have the graph's names for them."""
        network = self._network
        inputs = [(network.get_input(at), True) for at in range(network.num_inputs)]
        outputs = [(network.get_output(at), False) for at in range(network.num_outputs)]
        return {tensor.name: self._tensor(tensor, given, part) for tensor, given in (*inputs, *outputs)}

    def _tensor(self, tensor: Any, given: bool, part: str) -> Tensor:
        dtype = _NAMES.get(tensor.dtype.name, tensor.dtype.name.lower())
        if dtype not in DTYPES:
            raise UsageError(
                f"'{self._path}' has '{tensor.name}' of {dtype}; what goes in and out of an engine is {', '.join(DTYPES)}."
            )
        names = iter(_GIVEN_BACK[part])
        shape: list[int | str] = []
        for at, length in enumerate(tuple(tensor.shape)):
            axis = "" if length >= 0 else tensor.get_dimension_name(at) if given else next(names, "")
            shape.append(axis or int(length))
        return Tensor(given, dtype, tuple(shape))

    def build(
        self,
        target: Target,
        part: str,
        profile: Mapping[str, Span],
        *,
        on_step: OnStep | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        timings: bytes = b"",
    ) -> tuple[bytes, bytes]:
        """The engine and, of the TensorRT that measures its kernels, the timings for the next build."""
        api, builder = self._library.api, self._builder
        config: Any = builder.create_builder_config()
        bounds: Any = builder.create_optimization_profile()
        for name, tensor in self.tensors(part).items():
            if tensor.given and any(isinstance(axis, str) for axis in tensor.shape):
                spans = [(axis,) * 3 if isinstance(axis, int) else span(axis, profile, part) for axis in tensor.shape]
                bounds.set_shape(name, *([each[at] for each in spans] for at in range(3)))
        config.add_optimization_profile(bounds)
        config.progress_monitor = _monitor(self._library, on_step, cancelled)
        timed: Any = None
        if target.ahead:
            config.num_compute_capabilities = 1
            config.set_compute_capability(getattr(api.ComputeCapability, target.capability), 0)
        else:  # TensorRT-RTX measures nothing when it builds, it compiles at first use
            timed = config.create_timing_cache(timings)
            config.set_timing_cache(timed, False)
        made: Any = builder.build_serialized_network(self._network, config)
        if cancelled():
            raise KeyboardInterrupt
        if made is None:
            raise CompassError(
                f"{self._library.flavour} {self._library.version} read '{self._path}' and could not build an engine for "
                f"{target.name}: {self._log.last.rstrip('.')}. Building takes three to four times the memory of the weights; with "
                "less, free some or build for fewer or smaller frames."
            )
        return bytes(made), b"" if timed is None else bytes(timed.serialize())


def _monitor(library: Library, on_step: OnStep | None, cancelled: Callable[[], bool]) -> Any:
    api = library.api

    class _Monitor(api.IProgressMonitor):  # type: ignore[misc, name-defined]
        """Nothing may be raised here: it is called from C++. False ends the build."""

        def __init__(self) -> None:
            api.IProgressMonitor.__init__(self)
            self._phases: dict[str, int] = {}

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            del parent
            self._phases[phase] = steps

        def phase_finish(self, phase: str) -> None:
            self._phases.pop(phase, None)

        def step_complete(self, phase: str, step: int) -> bool:
            try:
                if on_step:
                    on_step(phase, step + 1, self._phases.get(phase, step + 1))
                return not cancelled()
            except BaseException:
                return False

    return _Monitor()
