"""Where a secret was left behind by a whole run: files and what is compressed in them, databases, process lists."""

from __future__ import annotations

import os
import sqlite3
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from e2e.processes import command_line, descendants

SMALL_BYTES = 1_000_000
EVERY_SECONDS = 2.0


def forms(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """The secrets as they may be written: as they are, and in base64."""
    return tuple(form for secret in secrets for form in (secret.encode(), b64encode(secret.encode()).rstrip(b"=")))


class SecretWatch(threading.Thread):
    """Looks, while everything runs, at what processes are started with and at files that come and go.

    Args:
        root: the process that starts all others.
        folder: where they keep their files. What is large is left for the end.
        wanted: forms of secrets.
    """

    def __init__(
        self, root: int, folder: Path, wanted: tuple[bytes, ...], every_seconds: float = EVERY_SECONDS
    ) -> None:
        super().__init__(daemon=True)
        self._every_seconds = every_seconds
        self.found: set[str] = set()
        self.looks = 0
        self._root, self._folder, self._wanted = root, folder, wanted
        self._seen: dict[Path, int] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._every_seconds):
            self.looks += 1
            lines = {command_line(process) for process in descendants(self._root)}
            self.found |= {line for line in lines if _holds(line.encode(errors="replace"), self._wanted)}
            self.found |= {str(path) for path in self._changed() if _holds(_content(path), self._wanted)}

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _changed(self) -> Iterator[Path]:
        """Small files that are new, or were written since the last look."""
        for path in files(self._folder):
            try:
                stat = path.stat()
            except OSError:
                continue
            is_news = self._seen.get(path) != stat.st_mtime_ns
            self._seen[path] = stat.st_mtime_ns
            if is_news and stat.st_size < SMALL_BYTES:
                yield path


def files(folder: Path) -> Iterator[Path]:
    """All files below a folder, also while some of them go."""
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def places_with(wanted: tuple[bytes, ...], folder: Path) -> list[str]:
    """The files below a folder that hold a secret, with the table or column where there is one.

    A value that is long, or compressed, is not there in one piece: databases and Parquet are read as such, too.
    """
    found: list[str] = []
    for path in files(folder):
        if _holds(_content(path), wanted):
            found.append(str(path))
        if path.suffix == ".parquet":
            found += [f"{path}: {column}" for column in _columns_with(path, wanted)]
        if path.suffix in {".db", ".sqlite"}:
            found += [f"{path}: {table}" for table in tables_with(wanted, path)]
    return found


def tables_with(wanted: tuple[bytes, ...], database: Path) -> list[str]:
    """The tables of a SQLite database with a row that holds a secret."""
    with closing(_opened(database)) as connection:
        return [name for name in tables(connection) if any(_holds(row, wanted) for row in _rows(connection, name))]


def filled_tables(database: Path) -> set[str]:
    """The tables of a SQLite database that have rows."""
    with closing(_opened(database)) as connection:
        return {name for name in tables(connection) if connection.execute(f'SELECT 1 FROM "{name}"').fetchone()}


def tables(connection: sqlite3.Connection) -> list[str]:
    """The names of all tables."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    return [name.decode() for (name,) in connection.execute(query)]


def _opened(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)
    connection.text_factory = bytes
    return connection


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[bytes]:
    for row in connection.execute(f'SELECT * FROM "{table}"'):
        yield b"\n".join(value for value in row if isinstance(value, bytes))


def _columns_with(path: Path, wanted: tuple[bytes, ...]) -> Iterator[str]:
    try:
        table = pq.ParquetFile(path).read()
    except FileNotFoundError:
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        is_text = pa.types.is_string(plain.type) or pa.types.is_binary(plain.type)
        if is_text and any(pc.any(pc.match_substring(plain, form)).as_py() for form in wanted):
            yield name


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _holds(content: bytes, wanted: tuple[bytes, ...]) -> bool:
    return any(form in content for form in wanted)
