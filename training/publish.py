"""Publishes what was trained: the checkpoint, and the two exports of it that the package carries.

python -m training.publish ROLES.pt PROGRESS.pt TOKENIZER CHECKPOINT --package compass_edge/tiny
python -m training.publish --again CHECKPOINT --package compass_edge/tiny     # the exports alone
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe
from training.checkpoint import states_of, write_checkpoint, write_progress


def export_both(checkpoint: Path, package: Path, decoder: str, vision: str) -> None:
    package.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as beside:
        scorer = Path(beside) / f"{checkpoint.name}-progress"
        write_progress(checkpoint, scorer)
        # As long as what is asked: questions and replies of three frames, and a step of 128 frames.
        for part, kind, source, positions in (("vlm", "vlm", checkpoint, 4096), ("prm", "robometer", scorer, 8192)):
            out = package / part
            if out.exists():
                shutil.rmtree(out)
            recipe = Recipe(kind=kind, vision=vision, embedding="fp16", decoder=decoder, positions=positions)
            manifest = export_model(source, out, recipe, name=f"compass-tiny-{part}")
            print(out, f"{manifest.bytes / 1e6:.2f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="ROLES.pt, PROGRESS.pt, TOKENIZER and CHECKPOINT; with --again CHECKPOINT alone",
    )
    parser.add_argument("--again", action="store_true", help="the checkpoint is there already")
    parser.add_argument("--package", type=Path, required=True, help="where the exports go")
    parser.add_argument("--decoder", default="int8")
    parser.add_argument("--vision", default="int8")
    given = parser.parse_args()
    if len(given.paths) != (1 if given.again else 4):
        parser.error("ROLES.pt, PROGRESS.pt, TOKENIZER and CHECKPOINT are expected, or --again and CHECKPOINT")
    *made_of, checkpoint = given.paths
    if not given.again:
        roles, progress, tokenizer = made_of
        write_checkpoint(states_of(roles), states_of(progress), tokenizer, checkpoint)
    export_both(checkpoint, given.package, given.decoder, given.vision)
    return 0


if __name__ == "__main__":
    sys.exit(main())
