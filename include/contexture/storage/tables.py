"""Parquet files of a home, by their place in it: written as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contexture.storage.home import Storage

Compression = Literal["snappy", "zstd", "lz4"]


def read_table(storage: Storage, relative: str, *, columns: Sequence[str] | None = None, filters: Any = None) -> Any:
    """A file as a table. Nothing of its path becomes a column."""
    path = storage.path(relative)
    asked = None if columns is None else [*columns]
    return pq.read_table(path, columns=asked, filters=filters, filesystem=storage.filesystem, partitioning=None)


def write_table(storage: Storage, relative: str, table: Any, *, compression: Compression = "snappy") -> None:
    """Puts a table in place as one file.

    Raises:
        RetriableError: the storage did not take it.
    """
    with storage.replacing(relative) as path:
        pq.write_table(table, path, filesystem=storage.filesystem, compression=compression)


def write_part(storage: Storage, relative: str, table: Any) -> None:
    """Writes a file under its own name at once, in a folder that counts only when its manifest is there.

    An object store moves a file by copying it, which landing files are too large for.
    """
    path = storage.path(relative)
    pq.write_table(table, path, filesystem=storage.filesystem, compression="zstd")


@contextmanager
def table_writer(
    storage: Storage, relative: str, schema: pa.Schema, *, compression: Compression = "zstd", **options: Any
) -> Iterator[pq.ParquetWriter]:
    """A writer of one file, which takes its name when the block ends without an error.

    Args:
        storage: the home.
        relative: the file's place.
        schema: of the file.
        compression, options: of `pyarrow.parquet.ParquetWriter`.
    """
    with (
        storage.replacing(relative) as path,
        pq.ParquetWriter(path, schema, filesystem=storage.filesystem, compression=compression, **options) as writer,
    ):
        yield writer


def open_table(storage: Storage, relative: str, *, pre_buffer: bool = True) -> pq.ParquetFile:
    """A file to read in parts; it is closed by its block."""
    return pq.ParquetFile(storage.path(relative), filesystem=storage.filesystem, pre_buffer=pre_buffer)


def open_dataset(
    storage: Storage, relative: str | Sequence[str], *, schema: pa.Schema | None = None, skips_others: bool = False
) -> Any:
    """All files of a folder, or these files, as one dataset.

    Args:
        storage: the home.
        relative: a folder, or places of files.
        schema: of all of them; None: that of the first.
        skips_others: leaves out files that are no Parquet.
    """
    place = storage.path(relative) if isinstance(relative, str) else [storage.path(each) for each in relative]
    return ds.dataset(
        place,
        filesystem=storage.filesystem,
        format="parquet",
        schema=schema,
        # Looking into each file costs a request to an object store.
        exclude_invalid_files=skips_others or None,
    )
