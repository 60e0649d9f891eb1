"""Bringing the operational tables to the version of today, by Alembic.

Imported when there is something to do: opening tables that are of today costs a query, not an import.
"""

from __future__ import annotations

import time
from pathlib import Path
from threading import Lock
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text

from contexture.operations.database import HEAD, revision_of
from contexture.operations.tables_found import FORMER_TABLE, LAST_FORMER, former_version, later_tables

LOCK_OF_POSTGRESQL: Final = 7_402_001
"""The advisory lock of whoever brings the tables up."""

# Alembic's steps find their connection through a variable of the process.
_ONE_AT_A_TIME: Final = Lock()


def bring_up(connection: Connection) -> None:
    """Brings the tables of a database to this version, within the connection's transaction.

    Tables that were made before Alembic are taken over as they are, and get the steps that they lack. Two processes at
    once do it once: on SQLite by the lock of a transaction that writes, on PostgreSQL by an advisory lock.

    Raises:
        ConfigurationError: the tables are of a later version.
    """
    if connection.dialect.name == "postgresql":
        # A step over long tables takes what it takes; locks are still waited for no longer than elsewhere.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_OF_POSTGRESQL})"))
    with _ONE_AT_A_TIME:
        config = _config(connection)
        if revision_of(connection) is None:
            _take_over(config, connection)
        try:
            command.upgrade(config, HEAD)
        except CommandError as error:
            raise later_tables(str(revision_of(connection))) from error


def _take_over(config: Config, connection: Connection) -> None:
    found = former_version(connection)
    if found is None:
        return
    if found > LAST_FORMER:
        raise later_tables(str(found))
    command.stamp(config, f"{found:04d}")
    # A Contexture of before finds a number that it doesn't know, and says that it is too old.
    connection.execute(
        text(f"INSERT INTO {FORMER_TABLE} (version, applied_ms) VALUES (:version, :now)"),  # noqa: S608 - a constant
        {"version": LAST_FORMER + 1, "now": time.time_ns() // 1_000_000},
    )


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    # Alembic reads the option as one of an ini file, where a per cent sign means something.
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    return config
