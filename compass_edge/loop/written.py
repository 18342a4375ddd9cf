"""What is written so far of replies that are still coming, by the key of their call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Written: TypeAlias = Mapping[str, Mapping[str, Any]]
