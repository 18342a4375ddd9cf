"""What a codec and a resize do to a picture: the films of the evaluation were drawn larger, compressed and made smaller; training
pictures never were. Colours are blurred, edges softer or harder, and a little noise is left.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_AS_DRAWN = 0.3  # of pictures
_COLOUR = 0.9  # most of the blurred colours
_SOFT, _HARD = 0.6, 0.4  # most of the blurred brightness, and most of what sharpening adds
_NOISE = 2.5  # levels
_LUMA = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
_BLUR = torch.tensor([1.0, 2.0, 1.0])


@torch.autocast("cpu", enabled=False)
def decoded(pictures: Tensor, chance: torch.Generator) -> Tensor:
    """[N, side, side, 3] bytes, each as some film might have it."""
    count = len(pictures)

    def drawn(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, 1, generator=chance)

    x = pictures.permute(0, 3, 1, 2).float()
    bright = (x * _LUMA).sum(1, keepdim=True)
    colour = x - bright
    colour = torch.lerp(colour, _blurred(colour), drawn(0, _COLOUR))
    bright = torch.lerp(bright, _blurred(bright), drawn(-_HARD, _SOFT))
    noise = drawn(0, _NOISE) * torch.randn(bright.shape, generator=chance)
    made = (bright + colour + noise).round().clamp(0, 255).to(torch.uint8)
    kept = drawn(0, 1) < _AS_DRAWN
    return torch.where(kept, pictures.permute(0, 3, 1, 2), made).permute(0, 2, 3, 1)


def _blurred(x: Tensor) -> Tensor:
    """By three pixels each way, the edges repeated."""
    channels = x.shape[1]
    kernel = (_BLUR[:, None] * _BLUR / _BLUR.sum() ** 2).expand(channels, 1, 3, 3)
    return F.conv2d(F.pad(x, (1, 1, 1, 1), "replicate"), kernel, groups=channels)
