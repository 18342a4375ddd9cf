"""Where a checkpoint keeps the parts of its model: names differ between libraries and their versions, endings do not."""

from __future__ import annotations

import re

from compass_edge.errors import UsageError
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.matrix import Block, Weights


def tower_of(checkpoint: Checkpoint) -> Weights:
    return Weights(checkpoint, _prefix(checkpoint, "patch_embed.proj.weight", "a vision tower"))


def text_of(checkpoint: Checkpoint) -> Weights:
    return Weights(checkpoint, _prefix(checkpoint, "embed_tokens.weight", "a text model"))


def heads_of(checkpoint: Checkpoint) -> Weights:
    """RoboMeter's heads."""
    return Weights(checkpoint, _prefix(checkpoint, "progress_head.0.weight", "RoboMeter's progress head"))


def logits_table(checkpoint: Checkpoint, text: Weights, shape: tuple[int, int]) -> Block:
    """The language model's head; without one of its own it shares the embedding."""
    for name in ("lm_head.weight", "model.lm_head.weight"):
        if name in checkpoint:
            return Weights(checkpoint).block(name, shape)
    config = checkpoint.config
    tied = config.get("tie_word_embeddings", (config.get("text_config") or {}).get("tie_word_embeddings", False))
    if not tied:
        raise UsageError(
            f"'{checkpoint.folder}' has no tensor 'lm_head.weight', and its config.json does not say that the head shares the "
            "embedding (tie_word_embeddings). The checkpoint is incomplete."
        )
    return text.block("embed_tokens.weight", shape)


def has_progress_heads(checkpoint: Checkpoint) -> bool:
    return any(name.endswith("progress_head.0.weight") for name in checkpoint.names())


def check_count(weights: Weights, name: str, count: int, setting: str) -> None:
    """A config that names fewer layers than the weights have would export a part of a model in silence."""
    beyond = re.compile(re.escape(f"{weights.prefix}{name}.") + r"(\d+)\.")
    for tensor in weights.checkpoint.names():
        if (found := beyond.match(tensor)) and int(found[1]) >= count:
            raise UsageError(
                f"'{weights.checkpoint.folder}' has the tensor '{tensor}', and by config.json there are only {count} such parts "
                f"({setting}). Config and weights are of two models: fetch both from the same place."
            )


def _prefix(checkpoint: Checkpoint, ending: str, what: str) -> str:
    # Heads that guess ahead (mtp) may carry an embedding of their own.
    names = (name for name in checkpoint.names() if not name.startswith("mtp."))
    found = [name.removesuffix(ending) for name in names if name.endswith(ending)]
    if len(found) != 1:
        came = "there is none" if not found else f"there are {len(found)}: {', '.join(sorted(found))}"
        raise UsageError(
            f"'{checkpoint.folder}' must have {what}, known by one tensor whose name ends in '{ending}', and {came}."
        )
    return found[0]
