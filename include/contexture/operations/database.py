"""The database of the operational tables: where it is, how it is opened, and which version of the tables it has."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from contexture.errors import ConfigurationError
from contexture.operations.tables import (
    EVENTS,
    INTERVENTIONS,
    METADATA,
    SCHEMA_VERSION,
    TRANSACTIONS,
    VERIFICATIONS,
    VIEW_OF_TRANSACTIONS,
    VIEWS,
)

DATABASE_VARIABLE = "CONTEXTURE_DATABASE"
DEFAULT_FILE = "operations.sqlite"

# A send must not wait for the tables: whoever is blocked longer gives up and says so.
_BUSY_SECONDS: Final = 1.0
# libpq takes no less.
_CONNECT_SECONDS: Final = 2
_LOCK_OF_MIGRATIONS: Final = 7_402_001


def database_url(home: str) -> URL | None:
    """Where the tables are: `CONTEXTURE_DATABASE` (an SQLAlchemy URL), else a SQLite file below a local home.

    Args:
        home: CONTEXTURE_HOME as `Storage.root` has it.

    Returns:
        None when nothing is set and the home is an object store: there are no tables then.

    Raises:
        ConfigurationError: the variable holds no URL.
    """
    given = os.environ.get(DATABASE_VARIABLE)
    if given:
        return _parsed(given)
    return None if "://" in home else URL.create("sqlite", database=str(Path(home) / DEFAULT_FILE))


def open_engine(url: URL) -> Engine:
    """An engine whose every wait is short, and whose errors show neither values nor the password.

    Raises:
        ConfigurationError: there is no driver for the address.
    """
    try:
        engine = create_engine(url, hide_parameters=True, pool_pre_ping=False, connect_args=_options(url))
    except (ArgumentError, ImportError, NoSuchModuleError) as error:
        raise _no_driver(url) from error
    if url.get_backend_name() == "sqlite":
        _set_up_sqlite(engine)
    return engine


def migrate(engine: Engine) -> None:
    """Brings the tables to this version; two at once do it once.

    Raises:
        ConfigurationError: the tables are of a newer version.
    """
    if _version(engine) == len(MIGRATIONS):
        return
    if engine.url.database and engine.url.get_backend_name() == "sqlite":
        Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_OF_MIGRATIONS})"))
        SCHEMA_VERSION.create(connection, checkfirst=True)
        found = connection.scalar(select(func.max(SCHEMA_VERSION.c.version))) or 0
        if found > len(MIGRATIONS):
            raise ConfigurationError(
                f"the operational tables are of version {found}, and this Contexture knows {len(MIGRATIONS)}",
                next_step="upgrade Contexture here too, or give it a database of its own (CONTEXTURE_DATABASE)",
            )
        for version, step in enumerate(MIGRATIONS[found:], start=found + 1):
            step(connection)
            connection.execute(SCHEMA_VERSION.insert().values(version=version, applied_ms=time.time_ns() // 1_000_000))


def _first_tables(connection: Connection) -> None:
    METADATA.create_all(connection)
    for view in VIEWS:
        connection.execute(text(view))


def _registry_transactions(connection: Connection) -> None:
    """Tells a registry transaction's deletions from its additions, and spells a view as registries do."""
    # Tables that are made today have the column from the start.
    known = {column["name"] for column in inspect(connection).get_columns(TRANSACTIONS.name)}
    if TRANSACTIONS.c.source_deletions.name not in known:
        connection.execute(text(f"ALTER TABLE {TRANSACTIONS.name} ADD COLUMN source_deletions BOOLEAN"))
    connection.execute(text(VIEW_OF_TRANSACTIONS))


def _verifications(connection: Connection) -> None:
    """Keeps what verifications of the topics found."""
    VERIFICATIONS.create(connection, checkfirst=True)


def _interventions(connection: Connection) -> None:
    """Keeps what people did."""
    INTERVENTIONS.create(connection, checkfirst=True)


def _own_events(connection: Connection) -> None:
    """Keeps what Contexture did, for publications that tell it."""
    EVENTS.create(connection, checkfirst=True)


MIGRATIONS: Final[tuple[Callable[[Connection], None], ...]] = (
    _first_tables,
    _registry_transactions,
    _verifications,
    _interventions,
    _own_events,
)
"""What leads from each version of the tables to the next. Only ever added to: a step that was released stays."""


def _version(engine: Engine) -> int:
    if engine.url.get_backend_name() == "sqlite" and not Path(engine.url.database or "").exists():
        return 0
    with engine.connect() as connection:
        if not inspect(connection).has_table(SCHEMA_VERSION.name):
            return 0
        return connection.scalar(select(func.max(SCHEMA_VERSION.c.version))) or 0


def _parsed(given: str) -> URL:
    try:
        return make_url(given)
    except ArgumentError:
        raise ConfigurationError(
            f"{DATABASE_VARIABLE} holds no database URL",
            next_step="write it as postgresql+psycopg2://user:password@host:5432/name or sqlite:////folder/file.sqlite",
        ) from None


def _no_driver(url: URL) -> ConfigurationError:
    return ConfigurationError(
        f"there is no driver for {url.render_as_string(hide_password=True)}",
        next_step="install one and name it in the URL, as in postgresql+psycopg2:// with psycopg2-binary",
    )


def _options(url: URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        return {"timeout": _BUSY_SECONDS, "check_same_thread": False}
    if url.get_driver_name() in {"psycopg2", "psycopg"}:
        limit = int(_BUSY_SECONDS * 1000)
        limits = f"-c statement_timeout={limit} -c lock_timeout={limit}"
        return {"connect_timeout": _CONNECT_SECONDS, "options": limits, "application_name": "contexture"}
    return {}


def _set_up_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        # The driver's own idea of transactions would begin them late, and let two writers deadlock.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        reads = connection.get_execution_options().get("reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
