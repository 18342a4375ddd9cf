"""What is learned of a batch: the words of replies and prompts, or progress and what it depends on."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from training.batch import Batch
from training.model import BINS, Tiny
from training.nearness import Nearness

_NEARNESS = 0.5  # weight of how near the hand is to what a clip's sentence names
_ASIDE = 0.3  # weight of the words of prompts: plans, memories and steps are full of words that are copied
Both = tuple[Tensor | None, Tensor | None]


def loss_of(model: Tiny, nearness: Nearness, batch: Batch, both: Both, mark: int) -> tuple[Tensor, float]:
    """The loss, and a number that a person can follow: tokens right, or the mean error of progress."""
    hidden = model.decoder(batch.ids, batch.positions, *both)
    if len(batch.progress):
        at = hidden[batch.ids == mark]
        loss, told = _progress_loss(model, at, batch)
        return loss + _NEARNESS * nearness.loss(at, batch.nearness), told
    counted = batch.weights[:, 1:] + batch.asides[:, 1:] > 0
    logits, wanted = model.logits(hidden[:, :-1][counted]).float(), batch.ids[:, 1:][counted]
    cross = F.cross_entropy(logits, wanted, reduction="none")
    weight, aside = batch.weights[:, 1:][counted], batch.asides[:, 1:][counted]
    told = float((logits.argmax(-1) == wanted)[weight > 0].float().mean())
    return (cross * weight).sum() / weight.sum() + _ASIDE * (cross * aside).sum() / aside.sum(), told


def _progress_loss(model: Tiny, at: Tensor, batch: Batch) -> tuple[Tensor, float]:
    """Cross entropy with the two bins around the truth, the error itself, and whether the step is done."""
    logits, known = model.progress_head(at).float(), batch.counts
    place = batch.progress.clamp(0, 1) * (BINS - 1)
    low = place.floor().long().clamp(max=BINS - 2)
    share = (place - low)[:, None]
    wanted = torch.zeros_like(logits).scatter_(1, low[:, None], 1 - share).scatter_(1, low[:, None] + 1, share)
    error = ((logits.softmax(-1) * torch.linspace(0, 1, BINS)).sum(-1) - batch.progress).abs()
    total = known.sum().clamp(min=1)
    cross = (F.cross_entropy(logits, wanted, reduction="none") * known).sum() / total
    done = (batch.progress >= 1).float()
    success = F.binary_cross_entropy_with_logits(
        model.success_head(at)[:, 0].float(), done, weight=known, reduction="sum"
    )
    mean = (error * known).sum() / total
    return cross + 2 * mean + 0.2 * success / total, float(mean.detach())
