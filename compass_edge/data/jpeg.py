"""JPEG bytes to pictures."""

from __future__ import annotations

import io

import numpy as np

from compass_edge.data.film import Picture
from compass_edge.errors import EnvironmentFault


def decode_jpeg(data: bytes, *, swapped: bool = False) -> Picture:
    """`swapped`: OpenCV wrote it from RGB as if that were BGR. Raises ValueError when it is no picture.

    The file may be followed by zeros.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise EnvironmentFault("JPEG pictures need pillow: `pip install 'compass-edge[data]'`.") from error
    try:
        with Image.open(io.BytesIO(data)) as image:
            picture = np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"it is no JPEG picture: {error}") from error
    return np.ascontiguousarray(picture[..., ::-1] if swapped else picture)
