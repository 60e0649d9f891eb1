"""Bringing the operational tables to the version of today, by Alembic.

Imported when there is something to do: opening tables that are of today costs a query, not an import.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text

from contexture.operations.database import HEAD, revision_of
from contexture.operations.tables_found import unknown_tables

LOCK_OF_POSTGRESQL: Final = 7_402_001
"""The advisory lock of whoever brings the tables up."""

# Alembic's steps find their connection through a variable of the process.
_ONE_AT_A_TIME: Final = Lock()


def bring_up(connection: Connection) -> None:
    """Brings the tables of a database to this version, within the connection's transaction.

    Two processes at once do it once: on SQLite by the lock of a transaction that writes, on PostgreSQL by an advisory
    lock.

    Raises:
        ConfigurationError: the tables are of another version.
    """
    if connection.dialect.name == "postgresql":
        # A step over long tables takes what it takes; locks are still waited for no longer than elsewhere.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_OF_POSTGRESQL})"))
    with _ONE_AT_A_TIME:
        try:
            command.upgrade(_config(connection), HEAD)
        except CommandError as error:
            raise unknown_tables(str(revision_of(connection))) from error


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    # Alembic reads the option as one of an ini file, where a per cent sign means something.
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    return config
