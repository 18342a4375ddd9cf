"""One contender in a process of its own: JSON lines in, JSON lines out, so that no library disturbs another's threads."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class Contender(Protocol):
    def prefill(self, tokens: Sequence[int]) -> Any:
        """Forgets what was, reads the tokens, gives the logits of the last one."""

    def decode(self, tokens: Sequence[int]) -> Any:
        """Reads them one by one, as if each had just been chosen, and gives the logits behind the last."""


# Answers go to the true standard output; whatever a library prints from here on goes to standard error.
OUT = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def serve(contender: Contender, about: dict[str, Any]) -> None:
    def say(answer: dict[str, Any]) -> None:
        OUT.write(json.dumps(answer) + "\n")
        OUT.flush()

    say({"ready": True, **about})
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["do"] == "memory":
            say({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
            continue
        tokens = ask["tokens"]
        cpu, wall = time.process_time(), time.perf_counter()
        logits = contender.prefill(tokens) if ask["do"] == "prefill" else contender.decode(tokens)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        if ask.get("logits"):
            spent["logits"] = np.asarray(logits, np.float32).reshape(-1).tolist()  # type: ignore[assignment]
        say(spent)
