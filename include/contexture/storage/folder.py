"""A folder of a home: its files, documents and Parquet tables, by their names in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.documents import StoredDocument
from contexture.storage.file_tree import FileTree

Compression = Literal["snappy", "zstd", "lz4"]
_Document = TypeVar("_Document", bound=StoredDocument)


class StoredFolder:
    """One folder, which need not be there.

    Args:
        home: where it is.
        path: of the folder in the home.
    """

    def __init__(self, home: FileTree, path: str) -> None:
        self.home = home
        self.path = path

    @property
    def uri(self) -> str:
        """The address that Spark and people know the folder by."""
        return self.home.uri(self.path)

    def folder(self, name: str) -> StoredFolder:
        return StoredFolder(self.home, self.path_of(name))

    def path_of(self, name: str) -> str:
        """Returns the path of a file in the home, for messages."""
        return f"{self.path}/{name}" if self.path else name

    def uri_of(self, name: str) -> str:
        """Returns the address that Spark and people know a file by."""
        return self.home.uri(self.path_of(name))

    def exists(self, name: str | None = None) -> bool:
        """Returns whether a file is there; without a name, whether the folder is."""
        return self.home.exists(self.path if name is None else self.path_of(name))

    def remove(self, name: str | None = None) -> None:
        """Removes a file; without a name, the folder. Nothing happens when it is not there."""
        self.home.remove(self.path if name is None else self.path_of(name))

    def files(self, suffix: str = "") -> list[str]:
        """Returns the names of the files, sorted."""
        return self.home.files(self.path, suffix)

    def folders(self) -> list[str]:
        """Returns the names of the folders in this one, sorted."""
        return self.home.folders(self.path)

    def written_at(self) -> dict[str, datetime]:
        """Returns when each entry was last written, as `FileTree.written_at`."""
        return self.home.written_at(self.path)

    def read(self, name: str) -> bytes:
        """Returns the content of a file. Raises as `FileTree.read`."""
        return self.home.read(self.path_of(name))

    def size(self, name: str) -> int:
        return self.home.size(self.path_of(name))

    def sha256(self, name: str) -> str:
        """Returns the SHA-256 of a file, as hexadecimal digits."""
        return self.home.sha256(self.path_of(name))

    def write(self, name: str, content: bytes) -> None:
        """Writes a file as a whole."""
        self.home.write(self.path_of(name), content)

    def write_atomically(self, name: str) -> AbstractContextManager[str]:
        """Returns a block with a path to write to, as `FileTree.write_atomically`."""
        return self.home.write_atomically(self.path_of(name))

    @contextmanager
    def output_stream(self, name: str) -> Iterator[Any]:
        """Opens a stream to write to; the file takes its name when the block ends without an error."""
        with self.write_atomically(name) as path, self.home.filesystem.open_output_stream(path) as stream:
            yield stream

    def open_input(self, name: str) -> Any:
        """Returns a file to read at any position; it is closed by its block."""
        return self.home.filesystem.open_input_file(self.home.path(self.path_of(name)))

    def copy(self, name: str, target: StoredFolder) -> None:
        """Copies a file to another folder, under the same name."""
        self.home.copy(self.path_of(name), target.path_of(name))

    def document(self, kind: type[_Document], name: str) -> _Document:
        """Returns a document. Raises as `StoredDocument.from_file`."""
        return kind.from_file(self.home, self.path_of(name))

    def find_document(self, kind: type[_Document], name: str) -> _Document | None:
        """Returns a document, or None where there is none. Raises otherwise as `StoredDocument.from_file`."""
        return kind.find_file(self.home, self.path_of(name))

    def translate_errors(self, name: str) -> AbstractContextManager[None]:
        """Returns a block that translates errors, as `FileTree.translate_errors`."""
        return self.home.translate_errors(self.path_of(name))

    def translate_read_errors(self, name: str) -> AbstractContextManager[None]:
        """Returns a block that translates errors, as `FileTree.translate_read_errors`."""
        return self.home.translate_read_errors(self.path_of(name))

    def table(self, name: str, *, columns: Sequence[str] | None = None, filters: Any = None) -> Any:
        """Returns a Parquet file as a table. Nothing of its path becomes a column."""
        return pq.read_table(
            self.home.path(self.path_of(name)),
            columns=None if columns is None else [*columns],
            filters=filters,
            filesystem=self.home.filesystem,
            partitioning=None,
        )

    def schema(self, name: str) -> pa.Schema:
        return pq.read_schema(self.home.path(self.path_of(name)), filesystem=self.home.filesystem)

    def write_table(self, name: str, table: Any, *, compression: Compression = "snappy") -> None:
        """Writes a table as one file.

        Raises:
            RetriableError: the storage did not accept it.
        """
        with self.write_atomically(name) as path:
            pq.write_table(table, path, filesystem=self.home.filesystem, compression=compression)

    def write_part(self, name: str, table: Any) -> None:
        """Writes a file directly under its own name, in a folder that counts only when its manifest is there.

        An object store moves a file by copying it, which landing files are too large for.
        """
        path = self.home.path(self.path_of(name))
        pq.write_table(table, path, filesystem=self.home.filesystem, compression="zstd")

    @contextmanager
    def table_writer(
        self, name: str, schema: pa.Schema, *, compression: Compression = "zstd", **options: Any
    ) -> Iterator[pq.ParquetWriter]:
        """Opens a writer of one file, which takes its name when the block ends without an error.

        Args:
            name: of the file.
            schema: of the file.
            compression, options: of `pyarrow.parquet.ParquetWriter`.
        """
        with (
            self.write_atomically(name) as path,
            pq.ParquetWriter(
                path, schema, filesystem=self.home.filesystem, compression=compression, **options
            ) as writer,
        ):
            yield writer

    def open_table(self, name: str, *, pre_buffer: bool = True, **options: Any) -> pq.ParquetFile:
        """Returns a file to read in parts; it is closed by its block.

        Args:
            name: of the file.
            pre_buffer, options: of `pyarrow.parquet.ParquetFile`.
        """
        path, filesystem = self.home.path(self.path_of(name)), self.home.filesystem
        return pq.ParquetFile(path, filesystem=filesystem, pre_buffer=pre_buffer, **options)

    def dataset(
        self, names: Sequence[str] | None = None, *, schema: pa.Schema | None = None, skips_others: bool = False
    ) -> Any:
        """Returns all files of the folder as one dataset.

        Args:
            names: only these files; all of them when None.
            schema: of all of them; None: that of the first.
            skips_others: leaves out files that are no Parquet.
        """
        # It imports pandas, which costs each process that only sends 0.26 s and 45 MiB.
        import pyarrow.dataset as ds

        paths = None if names is None else [self.home.path(self.path_of(name)) for name in names]
        return ds.dataset(
            self.home.path(self.path) if paths is None else paths,
            filesystem=self.home.filesystem,
            format="parquet",
            schema=schema,
            # Looking into each file costs a request to an object store.
            exclude_invalid_files=skips_others or None,
        )
