"""Parquet tables, a few columns at a time, with errors that name the file, the column and what was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compass_edge.errors import EnvironmentFault, IntegrityError


def _parquet_module() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise EnvironmentFault("Parquet files need pyarrow: `pip install 'compass-edge[data]'`.") from error
    return pyarrow.parquet


class Table:
    """One file. `filters` are pyarrow's, such as [("episode_index", "=", 3)]."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parquet = _parquet_module()
        try:
            self.columns: list[str] = list(self._parquet.read_schema(path).names)
        except Exception as error:  # pyarrow has a family of its own, and passes on others
            why = "it is not there" if not path.is_file() else f"it cannot be read: {_first_line(error)}"
            raise IntegrityError(
                f"'{path}' should be a parquet file, and {why}. A file without its end was never finished by its writer."
            ) from error

    def rows(self, needed: Sequence[str], optional: Sequence[str] = (), filters: Any = None) -> list[dict[str, Any]]:
        for column in needed:
            if column not in self.columns:
                raise IntegrityError(
                    f"'{self.path}': the column '{column}' is missing; there are: {', '.join(self.columns[:24])}."
                )
        wanted = [*needed, *(column for column in optional if column in self.columns)]
        try:
            table = self._parquet.read_table(self.path, columns=wanted, filters=filters, partitioning=None)
            rows: list[dict[str, Any]] = table.to_pylist()
        except Exception as error:
            raise IntegrityError(
                f"'{self.path}': the columns {', '.join(wanted)} cannot be read ({_first_line(error)}): the file is cut off "
                "or damaged. Fetch it again."
            ) from error
        return rows


def whole(row: dict[str, Any], column: str, where: str, least: int = 0) -> int:
    """A whole number, also where pandas has made a float of it because a neighbour was missing."""
    value = row[column]
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise IntegrityError(f"{where}: {column} must be a whole number of at least {least}, and {value!r} came.")
    return value


def number(row: dict[str, Any], column: str, where: str) -> float:
    value = row[column]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise IntegrityError(f"{where}: {column} must be a number of at least 0, and {value!r} came.")
    return float(value)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
