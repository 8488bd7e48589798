"""Tables that are too long for memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tcplab import _core
from tcplab import _polars as pl

ROWS = 65_536
"""The number of rows in a part, here and in Parquet files."""


@dataclass(frozen=True)
class LongTable:
    """A table whose rows are in a temporary file and are read part by part."""

    frame: _core.Frame

    def lazy(self) -> pl.LazyFrame:
        """The table as a lazy frame."""
        from polars.io.plugins import register_io_source  # noqa: PLC0415 (see `_polars`)

        return register_io_source(self._read, schema=self._schema, is_pure=True)

    @cached_property
    def _schema(self) -> pl.Schema:
        return pl.DataFrame(self.frame.part(self.frame.parts - 1)).schema

    def _read(
        self,
        columns: list[str] | None,
        predicate: pl.Expr | None,
        rows: int | None,
        _batch: int | None,
    ) -> Iterator[pl.DataFrame]:
        for number in range(self.frame.parts):
            if rows == 0:
                return
            part = pl.DataFrame(self.frame.part(number))
            if rows is not None:
                part = part.head(rows)
                rows -= len(part)
            if predicate is not None:
                part = part.filter(predicate)
            yield part if columns is None else part.select(columns)

    def estimated_size(self) -> int:
        """The number of bytes held in memory."""
        return int(pl.DataFrame(self.frame.part(self.frame.parts - 1)).estimated_size())

    def write_parquet(self, path: Path) -> str:
        """Writes the table to a file, and returns the SHA-256 of the file.

        Raises:
            OSError: The file cannot be written.
        """
        # Polars reports a full disk as an error of its own.
        try:
            with path.open("wb") as file:
                self.lazy().sink_parquet(
                    file, compression="zstd", row_group_size=ROWS, maintain_order=True
                )
        except pl.exceptions.PolarsError as error:
            raise OSError(0, str(error), str(path)) from None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
