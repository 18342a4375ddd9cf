"""Training needs torch, transformers and MuJoCo: `make parity` brings them. Without them its tests are skipped."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("mujoco")
