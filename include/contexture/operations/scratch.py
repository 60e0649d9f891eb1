"""A temporary database for one piece of work, so that memory does not grow with the data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

# Keys come in no order: with less, half of the time goes into moving pages.
_CACHE_KIBIBYTES: Final = 65_536


@contextmanager
def scratch_database(prefix: str) -> Iterator[sqlite3.Connection]:
    """An empty database in a temporary file, which no one needs after a crash."""
    with (
        TemporaryDirectory(prefix=prefix) as folder,
        closing(sqlite3.connect(Path(folder) / "scratch.sqlite")) as database,
    ):
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        database.execute(f"PRAGMA cache_size=-{_CACHE_KIBIBYTES}")
        yield database
