"""The mean of checkpoints that have one tower: often better than each, and between them in what they have unlearned.

python -m training.mean OUT.pt CHECKPOINT CHECKPOINT ...
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from training.checkpoint import states_of, visual_of


def mean_of(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the decoders; the tower and its heads are the first one's, which all must share."""
    first = several[0]
    for other in several[1:]:
        seen = visual_of(other)
        moved = [name for name, values in visual_of(first).items() if not torch.equal(values, seen[name])]
        if moved:
            sys.exit(f"All checkpoints must have one tower, and one of them has another {moved[0]}.")
    model = {name: torch.stack([one["model"][name] for one in several]).mean(0) for name in first["model"]}
    return {"model": model, "heads": first["heads"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("checkpoints", type=Path, nargs="+", help="folders, or what `roles` has saved")
    given = parser.parse_args()
    torch.save(mean_of([states_of(path) for path in given.checkpoints]), given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
