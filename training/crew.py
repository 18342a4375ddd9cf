"""A crew: one training process a core, each with its own samples, gradients averaged. Alone it is one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, distributed


class Crew:
    def __init__(self, rank: int, size: int, port: int) -> None:
        torch.set_num_threads(1)
        self.rank, self.size = rank, size
        if size > 1:
            distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def average(self, parameters: Sequence[Tensor], most: float) -> float:
        """Gradients become the crew's mean, at most so long; returns how long they were."""
        flat = torch.cat([torch.zeros(one.numel()) if one.grad is None else one.grad.flatten() for one in parameters])
        if self.size > 1:
            distributed.all_reduce(flat)
            flat /= self.size
        length = float(flat.norm())
        flat *= min(1.0, most / (length + 1e-6))
        at = 0
        for one in parameters:
            one.grad = flat[at : at + one.numel()].view_as(one)
            at += one.numel()
        return length

    def gathered(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        distributed.all_gather_object(found, value)
        return found

    def agreed(self, word: bool) -> bool:
        """What the first says."""
        return bool(self.gathered(word)[0])


@cache
def instructions() -> str:
    """The best that oneDNN may use: some virtual machines announce AMX and die of it. Where it runs, products in bfloat16 take a
    tenth of the time."""
    tried = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); assert float((a @ a)[0, 0]) == 64"
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_AMX"}
    ran = subprocess.run([sys.executable, "-c", tried], env=environment, stderr=subprocess.DEVNULL, check=False)
    return "AVX512_CORE_BF16" if ran.returncode else "AVX512_CORE_AMX"


def launched(module: str, arguments: Iterable[str], size: int) -> int:
    """Starts the crew's processes and waits; the first failure is the crew's."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": instructions()}
    crew = [
        subprocess.Popen([sys.executable, "-m", module, *arguments, "--rank", str(rank)], env=environment)
        for rank in range(size)
    ]
    try:
        return max(process.wait() for process in crew)
    except KeyboardInterrupt:
        for process in crew:
            process.terminate()
        raise
