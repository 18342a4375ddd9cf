"""Whole machines, played from a folder and canned answers of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from compass_edge.boards.command import Answer
from compass_edge.boards.probe import Sources

_ABSENT = Answer(trouble="It is not installed.", there=False)
MAXN = "NV Power Mode: MAXN\n0\n"
CLOCKS = "SOC family:tegra234\nGPU MinFreq=1300500000 MaxFreq=1300500000 CurrentFreq=1300500000\n"


def l4t(major: int, revision: str) -> str:
    return f"# R{major} (release), REVISION: {revision}, GCID: 45678901, BOARD: generic, EABI: aarch64, DATE: Tue Jan  6 2026\n"


def ubuntu(version: str) -> str:
    return f'PRETTY_NAME="Ubuntu {version} LTS"\nNAME="Ubuntu"\nVERSION_ID="{version}"\nID=ubuntu\nID_LIKE=debian\n'


def meminfo(total_gib: float, free_gib: float) -> str:
    return f"MemTotal:  {int(total_gib * (1 << 20))} kB\nMemFree:  1024 kB\nMemAvailable:  {int(free_gib * (1 << 20))} kB\n"


def played(
    folder: Path,
    files: Mapping[str, str | bytes],
    commands: Mapping[str, str | Answer] | None = None,
    *,
    arch: str = "aarch64",
    abi: str = "cp312",
    glibc: tuple[int, int] | None = (2, 39),
    packages: Mapping[str, str] | None = None,
    libraries: Sequence[str] = (),
) -> Sources:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for library in libraries:
        path = folder / f"usr/lib/{arch}-linux-gnu" / library
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    answers = commands or {}

    def run(command: Sequence[str]) -> Answer:
        answer = answers.get(command[0], _ABSENT)
        return Answer(answer) if isinstance(answer, str) else answer

    there = packages or {}
    return Sources(folder, run, arch, abi, glibc, lambda name: there.get(name, ""))


def orin(
    folder: Path, *, jetpack: str = "7.2", memory: float = 64, model: str = "NVIDIA Jetson AGX Orin Developer Kit"
) -> Sources:
    newer = jetpack == "7.2"
    return played(
        folder,
        {
            "proc/device-tree/model": f"{model}\0",
            "etc/nv_tegra_release": l4t(39, "2.0") if newer else l4t(36, "4.3"),
            "etc/os-release": ubuntu("24.04" if newer else "22.04"),
            "proc/meminfo": meminfo(0.958 * memory, 0.9 * memory),
        },
        {"nvpmodel": MAXN if newer else "NV Power Mode: MODE_30W\n2\n", "jetson_clocks": CLOCKS},
        abi="cp312" if newer else "cp310",
        glibc=(2, 39) if newer else (2, 35),
        libraries=("libcudart.so.13.2", "libnvinfer.so.10.16.0")
        if newer
        else ("libcudart.so.12.6.68", "libnvinfer.so.10.3.0"),
        packages={"tensorrt": "10.16.0.72", "tensorrt-edgellm": "0.11.0"} if newer else {"tensorrt": "10.3.0"},
    )


def thor(folder: Path, *, jetpack: str = "7.1") -> Sources:
    revision = {"7.0": (38, "2.0"), "7.1": (38, "4.0"), "7.2": (39, "2.0")}[jetpack]
    tensorrt = "libnvinfer.so.10.16.0" if jetpack == "7.2" else "libnvinfer.so.10.13.3"
    return played(
        folder,
        {
            "proc/device-tree/model": "NVIDIA Jetson AGX Thor Developer Kit\0",
            "etc/nv_tegra_release": l4t(*revision),
            "etc/os-release": ubuntu("24.04"),
            "proc/meminfo": meminfo(122.8, 115),
        },
        {"nvidia-smi": "NVIDIA Thor, 11.0, 580.00, [N/A], [N/A]\n", "nvpmodel": "NV Power Mode: 120W\n1\n"},
        libraries=("libcudart.so.13.0.48", tensorrt),
    )


def rtx(
    folder: Path, card: str, capability: str, mebibytes: int, *, system: str = "24.04", nvinfer: str = "10.16.1"
) -> Sources:
    return played(
        folder,
        {
            "etc/os-release": ubuntu(system),
            "proc/meminfo": meminfo(62.6, 50),
            "sys/class/dmi/id/product_name": "Robot PC\n",
        },
        {"nvidia-smi": f"{card}, {capability}, 590.44.01, {mebibytes}, {mebibytes - 600}\n"},
        arch="x86_64",
        libraries=("libcudart.so.13.2.86", f"libnvinfer.so.{nvinfer}") if nvinfer else ("libcudart.so.13.2.86",),
    )


def spark(folder: Path) -> Sources:
    return played(
        folder,
        {
            "sys/class/dmi/id/product_name": "NVIDIA DGX Spark\n",
            "etc/os-release": ubuntu("24.04"),
            "proc/meminfo": meminfo(119.7, 110),
        },
        {"nvidia-smi": "NVIDIA GB10, 12.1, 580.95.05, [N/A], [N/A]\n"},
        libraries=("libcudart.so.13.0.48", "libnvinfer.so.10.16.1"),
    )


def no_gpu(folder: Path, memory: float = 31) -> Sources:
    files = {"etc/os-release": 'ID=debian\nVERSION_ID="12"\n', "proc/meminfo": meminfo(memory, memory - 4)}
    return played(folder, files, arch="x86_64", abi="cp311", glibc=(2, 36))


def garbled(folder: Path) -> Sources:
    """Every source says something that it should not."""
    return played(
        folder,
        {
            "proc/device-tree/model": b"\xff\xfeJetson\x00\x00",
            "etc/nv_tegra_release": "# Rxx (oops)\n",
            "etc/os-release": "no equals sign\n=\nID\n",
            "proc/meminfo": "MemTotal: many kB\n\n:::\n",
            "sys/class/devfreq/17000000.gpu/cur_freq": "fast",
        },
        {
            "nvidia-smi": "Failed to initialize NVML\nNVIDIA X, eight, , lots, some\n",
            "nvpmodel": "NVPM ERROR: no such device\n",
            "jetson_clocks": Answer(trouble="`jetson_clocks --show` failed with exit code 1: Run as root."),
        },
        glibc=None,
        libraries=("libnvinfer.so.ten", "libcudart.so.", "libnvinfer.so.10"),
    )
