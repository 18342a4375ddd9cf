"""The payload planner: which payload of TensorRT Edge-LLM fits a machine, or why none does and what to use instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compass_edge.boards.payload import Payload, Table, Target, table

_TENSORRT = {"libnvinfer.so.10": "TensorRT 10.16", "libnvinfer.so.11": "TensorRT 11.0"}
_CUDA = {"libcudart.so.13": "CUDA 13"}
_SERVERS = (
    "Serve the models with vLLM or llama-server instead: compass-edge asks them over the OpenAI-compatible client, as it would "
    "ask Edge-LLM's own server."
)
_CARDS = {
    75: "RTX 20xx and T4",
    89: "RTX 40xx, RTX Ada and L4",
    90: "H100 and H200",
    103: "B300",
}


@dataclass(frozen=True, slots=True)
class PayloadPlan:
    """`payload` fits as the machine is. Else `why` says what is missing, `nearest` is what would fit then, `instead` the way out."""

    payload: Payload | None
    why: str
    instead: str = ""
    nearest: Payload | None = None
    warning: str = ""  # of one that fits, and should not be trusted blindly

    @property
    def install(self) -> str:
        """The command, where one is enough."""
        there = table()
        return f"pip install '{there.package}[server]=={there.version}'" if self.payload else ""


def plan_payload(target: Target, there: Table | None = None) -> PayloadPlan:
    there = there or table()
    what = f"TensorRT Edge-LLM {there.version}"
    if target.sm is None:
        return PayloadPlan(None, f"{what} needs an NVIDIA GPU, and none was found.", _without_gpu())
    wheel = there.wheels.get(target.arch)
    if wheel is None:
        return PayloadPlan(
            None, f"{what} has wheels for {_listed(there.wheels)}, and this CPU is {target.arch}.", _SERVERS
        )
    rows = [row for row in there.payloads if row.arch == target.arch and row.sm == target.sm]
    if not rows:
        return _no_card(what, target, there)
    placed = [row for row in rows if row.family == target.family and target.mark in row.marks]
    if not placed:
        return _no_platform(what, target, rows)
    if target.glibc is not None and target.glibc < wheel.glibc:
        came = f"glibc {target.glibc[0]}.{target.glibc[1]}"
        why = (
            f"{what}'s wheel for {target.arch} is {wheel.tag}: it needs glibc {_dotted(wheel.glibc)}, and {came} came."
        )
        return PayloadPlan(None, why, f"Update the system. {_SERVERS}", placed[0])
    if target.python_abi not in there.abis:
        why = f"{what} has wheels for Python {_listed(there.abis)}, and this is {target.python_abi}."
        return PayloadPlan(
            None, why, f"Make an environment with another Python: `uv venv --python 3.12`. {_SERVERS}", placed[0]
        )
    return _by_libraries(what, target, placed)


def _by_libraries(what: str, target: Target, placed: list[Payload]) -> PayloadPlan:
    for row in placed:
        if row.cudart in target.cudart and row.nvinfer in target.nvinfer:
            return PayloadPlan(row, f"{what}: payload {row.title}.", nearest=row, warning=_warning(row))
    nearest = next((row for row in placed if row.nvinfer in target.nvinfer), placed[0])
    lacking = [
        f"{wanted} ({names[wanted]})"
        for wanted, have, names in (
            (nearest.cudart, target.cudart, _CUDA),
            (nearest.nvinfer, target.nvinfer, _TENSORRT),
        )
        if wanted not in have
    ]
    came = ", ".join((*target.cudart, *target.nvinfer)) or "neither of them"
    why = f"{what}'s payload {nearest.title} needs {' and '.join(lacking)}, and {came} came."
    if nearest.family == "jetson":
        return PayloadPlan(None, why, "Install JetPack's own: `sudo apt install nvidia-jetpack`.", nearest)
    return PayloadPlan(
        None, why, f"Install them from NVIDIA's repository for {nearest.family} {nearest.marks[0]}.", nearest
    )


def _no_card(what: str, target: Target, there: Table) -> PayloadPlan:
    known = sorted({row.sm for row in there.payloads if row.arch == target.arch})
    cards = _CARDS.get(target.sm or 0)
    named = f" ({cards})" if cards else ""
    why = f"{what} has no payload for sm_{target.sm}{named} on {target.arch}: it has them for {_listed(f'sm_{sm}' for sm in known)}."
    return PayloadPlan(None, why, f"{_SERVERS} Or build Edge-LLM from its sources.")


def _no_platform(what: str, target: Target, rows: list[Payload]) -> PayloadPlan:
    wanted = _listed(dict.fromkeys(f"{row.family} {' or '.join(row.marks)}" for row in rows))
    came = f"{target.family} {target.mark}".strip() or "a system that does not say what it is"
    why = f"{what}'s payloads for sm_{target.sm} on {target.arch} are for {wanted}, and this is {came}."
    if target.family != "jetson":
        return PayloadPlan(None, why, _SERVERS, rows[0])
    releases = _listed(dict.fromkeys(mark for row in rows if row.family == "jetson" for mark in row.marks))
    if _major(target.mark) < 38:
        why += (
            " The wheel could not be installed either: it needs glibc 2.39, which JetPack 7 has and JetPack 6 has not."
        )
    instead = f"Flash JetPack 7.2 (L4T {releases} is what fits this chip). {_SERVERS}"
    return PayloadPlan(None, why, instead, rows[0])


def _warning(row: Payload) -> str:
    if "R38.4" not in row.marks:
        return ""
    return (
        "With JetPack 7.1's TensorRT 10.13, FP16 engines of Qwen3-VL built for a batch of 1 are known to return garbage and to say "
        'nothing. Update to JetPack 7.2; else build with a batch of 2, or with __LUNOWUD="-peep:fc_h_fusion=off" set. Engines '
        "are tested against a known answer before they are used."
    )


def _without_gpu() -> str:
    return "The preset cpu runs small models on ONNX Runtime; larger ones may be served by another computer."


def _major(mark: str) -> int:
    digits = mark.removeprefix("R").partition(".")[0]
    return int(digits) if digits.isdigit() else 0


def _dotted(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
