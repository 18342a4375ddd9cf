"""Token ids to the vectors that the decoder reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compass_edge.engines.onnx.session import Options, open_session


class Embedding:
    def __init__(self, folder: Path, options: Options) -> None:
        self._session = open_session(folder / "embedding.onnx", options)

    def run(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """[tokens] to [tokens, hidden]."""
        made: NDArray[Any] = self._session.run(None, {"ids": ids[None]})[0][0]
        return made
