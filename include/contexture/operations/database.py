"""The database of the operational tables: where it is, how it is opened, and which version of the tables it has."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from contexture.errors import ConfigurationError

DATABASE_VARIABLE = "CONTEXTURE_DATABASE"
DEFAULT_FILE = "operations.sqlite"

NO_TABLES: Final = f"there are none, for CONTEXTURE_HOME is an object store and {DATABASE_VARIABLE} is not set"
"""Why a home without a database of its own is told by its files alone."""

# Whoever is blocked longer gives up and says so. Sends do not wait meanwhile: what they tell is written beside them. On
# a busy machine several writers of one SQLite file take more than a second.
_BUSY_SECONDS: Final = 5.0
_MIGRATION_SECONDS: Final = 30.0
# libpq takes no less.
_CONNECT_SECONDS: Final = 2

VERSION_TABLE: Final = "contexture_alembic_version"
"""Alembic's note of the tables' version; a name of its own, for Airflow's may be in the same database."""
HEAD: Final = "0001"
"""The version of the tables that this Contexture reads and writes: the last of `migrations/versions`."""


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
        ConfigurationError: the tables are of a later version.
    """
    if current_revision(engine) == HEAD:
        return
    # Alembic is imported where there is something to do, and before anybody else is kept waiting.
    from contexture.operations.migrating import bring_up

    if engine.url.database and engine.url.get_backend_name() == "sqlite":
        Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)
    patient_until = time.monotonic() + _MIGRATION_SECONDS
    while current_revision(engine) != HEAD:
        try:
            with engine.begin() as connection:
                bring_up(connection)
        except OperationalError as error:
            # Somebody else brings them up just now: that may take longer than a lock is waited for.
            if "lock" not in str(error.orig) or time.monotonic() > patient_until:
                raise


def current_revision(engine: Engine) -> str | None:
    """The version of the tables; None where there are none."""
    if file_is_missing(engine.url):
        return None
    with engine.connect().execution_options(reads=True) as connection:
        return revision_of(connection)


def file_is_missing(url: URL) -> bool:
    """Whether it is a SQLite file that nobody has written yet; connecting would make it."""
    if url.get_backend_name() != "sqlite":
        return False
    try:
        return not Path(url.database or "").exists()
    except OSError:
        return False  # in a folder that may not be looked into; connecting tells it


def revision_of(connection: Connection) -> str | None:
    """The same, of an open connection."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 - a constant
    return None if found is None else str(found)


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
