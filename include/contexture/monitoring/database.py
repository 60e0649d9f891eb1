"""The database of the operational tables: where it is, how it is opened, and which version of the tables it has."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock, local
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, Executable, Select, Table, create_engine, event, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, CursorResult, Row, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError

from contexture.errors import ConfigurationError, RetriableError

if TYPE_CHECKING:
    from alembic.config import Config

DATABASE_VARIABLE = "CONTEXTURE_DATABASE"
DEFAULT_FILE = "operations.sqlite"

NO_TABLES: Final = f"there are none, because CONTEXTURE_HOME is an object store and {DATABASE_VARIABLE} is not set"
"""Why status and page have only the files of a home without a database of its own."""

# A writer that is blocked longer stops and reports it. Sends do not wait for it. On a busy machine several writers of
# one SQLite file take more than a second.
_BUSY_SECONDS: Final = 5.0
_MIGRATION_SECONDS: Final = 30.0
# libpq accepts no shorter time.
_CONNECT_SECONDS: Final = 2

VERSION_TABLE: Final = "contexture_alembic_version"
"""Alembic's table with the version; a name of its own, because Airflow's may be in the same database."""
HEAD: Final = "0001"
"""The version of the tables that this Contexture reads and writes: the last of `migrations/versions`."""


def database_url(home: str) -> URL | None:
    """Returns where the tables are: `CONTEXTURE_DATABASE` (an SQLAlchemy URL), else a SQLite file below a local home.

    Args:
        home: CONTEXTURE_HOME as `Home.root` has it.

    Returns:
        None where the variable is not set and the home is an object store, because then there are no tables.

    Raises:
        ConfigurationError: the variable holds no URL.
    """
    given = os.environ.get(DATABASE_VARIABLE)
    if given:
        return _parsed(given)
    return None if "://" in home else URL.create("sqlite", database=str(Path(home) / DEFAULT_FILE))


def open_engine(url: URL) -> Engine:
    """Returns an engine whose waits are all short, and whose errors show neither values nor the password.

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
    """Brings the tables to this version; of two processes at the same time one does it.

    Raises:
        ConfigurationError: the tables are of a later version.
    """
    if current_revision(engine) == HEAD:
        return
    if engine.url.database and engine.url.get_backend_name() == "sqlite":
        Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)
    wait_until = time.monotonic() + _MIGRATION_SECONDS
    while current_revision(engine) != HEAD:
        try:
            with engine.begin() as connection:
                upgrade_schema(connection)
        except OperationalError as error:
            # Another process is migrating them: that may take longer than the time limit of a lock.
            if "lock" not in str(error.orig) or time.monotonic() > wait_until:
                raise


def current_revision(engine: Engine) -> str | None:
    """Returns the version of the tables; None where there are none."""
    if file_is_missing(engine.url):
        return None
    with engine.connect().execution_options(reads=True) as connection:
        return revision_of(connection)


def file_is_missing(url: URL) -> bool:
    """Returns whether it is a SQLite file that does not exist yet; connecting would create it."""
    if url.get_backend_name() != "sqlite":
        return False
    try:
        return not Path(url.database or "").exists()
    except OSError:
        return False  # in a folder without permission: connecting raises the error


def revision_of(connection: Connection) -> str | None:
    """Returns the version of the tables of an open connection."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 - a constant
    return None if found is None else str(found)


def _parsed(given: str) -> URL:
    try:
        return make_url(given)
    except ArgumentError:
        raise ConfigurationError(
            f"{DATABASE_VARIABLE} is not a database URL",
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
        # The driver itself would begin transactions late, so that two writers could deadlock.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        reads = connection.get_execution_options().get("reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


class TableAccess:
    """Reads and writes rows; the tables are created when they are first needed.

    Args:
        url: an SQLAlchemy URL, such as `sqlite:////folder/operations.sqlite` or `postgresql+psycopg2://…`.
    """

    def __init__(self, url: URL | str) -> None:
        self._url = make_url(url)
        self._shared = local()

    @property
    def address(self) -> str:
        """The URL of the database, without the password."""
        return self._url.render_as_string(hide_password=True)

    @property
    def is_there(self) -> bool:
        """False for a SQLite file that does not exist yet; reading would create it."""
        return not file_is_missing(self._url)

    def close(self) -> None:
        """Closes the connections."""
        if "_engine" in self.__dict__:
            self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        engine = open_engine(self._url)
        migrate(engine)
        return engine

    @contextmanager
    def one_connection(self) -> Iterator[None]:
        """Within the block, all queries of this thread use one connection; otherwise each query has its own.

        With a database beyond a network this saves two of three round trips: those that begin and end each query.
        """
        with ExitStack() as stack:
            with self._translating():
                connection = stack.enter_context(self._engine.connect().execution_options(reads=True))
            self._shared.connection = connection
            stack.callback(delattr, self._shared, "connection")
            yield

    def _put(self, table: Table, values: Mapping[str, Any]) -> None:
        """Inserts a row, or replaces the one with the same key."""
        self._change(self._replacing(table, values))

    def _replacing(self, table: Table, values: Mapping[str, Any]) -> Executable:
        insert = postgresql.insert if self._url.get_backend_name() == "postgresql" else sqlite.insert
        keys = [column.name for column in table.primary_key]
        statement = insert(table).values(**values)
        changes = {name: statement.excluded[name] for name in values if name not in keys}
        return statement.on_conflict_do_update(index_elements=keys, set_=changes)

    def _change(self, statement: Executable) -> int:
        """Executes a statement; returns how many rows it changed."""
        with self._writing() as connection:
            return changed_rows(connection, statement)

    def _page(self, query: Select[Any], limit: int, offset: int) -> Sequence[Row[Any]]:
        with self._reading() as connection:
            return connection.execute(query.limit(limit).offset(offset)).all()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._translating(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._translating():
            shared: Connection | None = getattr(self._shared, "connection", None)
            if shared is not None:
                yield shared
                return
            with self._engine.connect().execution_options(reads=True) as connection:
                yield connection

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            raise RetriableError(
                f"the operational tables in {self.address} do not respond ({type(error).__name__})",
                next_step="check that the database runs and CONTEXTURE_DATABASE names it; no record depends on it",
            ) from error


def changed_rows(connection: Connection, statement: Executable) -> int:
    """Executes a statement within a transaction; returns how many rows it changed."""
    result = connection.execute(statement)
    assert isinstance(result, CursorResult)
    return result.rowcount


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The version of the tables in a database.

    Attributes:
        address: of the database, without the password.
        found: the version of the tables; None where there are none.
    """

    address: str
    found: str | None

    @property
    def is_known(self) -> bool:
        """Whether this Contexture reads and writes them; tables that do not exist yet are created when needed."""
        return self.found in {None, HEAD}


def inspect_schema(url: URL) -> SchemaVersion:
    """Reads the version of the tables, and creates none.

    Raises:
        ConfigurationError: there is no driver for it.
        RetriableError: it does not respond.
    """
    address = url.render_as_string(hide_password=True)
    if file_is_missing(url):
        return SchemaVersion(address, None)
    with _connected(url, address) as connection:
        return SchemaVersion(address, revision_of(connection))


def unknown_tables(revision: str) -> ConfigurationError:
    """Returns the error for tables that another version of Contexture has created."""
    return ConfigurationError(
        f"the operational tables were written by another version of Contexture: they are of version {revision}, "
        f"and this one knows {HEAD}",
        next_step="install that version here too, or give this one a database of its own (CONTEXTURE_DATABASE); "
        "contexture tables rebuild fills it",
    )


@contextmanager
def _connected(url: URL, address: str) -> Iterator[Connection]:
    engine = open_engine(url)
    try:
        with engine.connect().execution_options(reads=True) as connection:
            yield connection
    except SQLAlchemyError as error:
        raise RetriableError(
            f"the operational tables in {address} do not respond ({type(error).__name__})",
            next_step="check that the database runs and CONTEXTURE_DATABASE names it",
        ) from error
    finally:
        engine.dispose()


LOCK_OF_POSTGRESQL: Final = 7_402_001
"""The advisory lock during a migration of the tables."""

# Alembic's migrations find their connection through a variable of the process.
_ONE_AT_A_TIME: Final = Lock()


def upgrade_schema(connection: Connection) -> None:
    """Brings the tables of a database to this version, within the connection's transaction.

    Of two processes at the same time one does it: SQLite has the lock of a transaction that writes, PostgreSQL an
    advisory lock.

    Raises:
        ConfigurationError: the tables are of another version.
    """
    # Alembic is imported only where there is something to do.
    from alembic import command
    from alembic.util import CommandError

    if connection.dialect.name == "postgresql":
        # A migration of long tables has no time limit; the limit for locks is the same as elsewhere.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_OF_POSTGRESQL})"))
    with _ONE_AT_A_TIME:
        try:
            command.upgrade(_config(connection), HEAD)
        except CommandError as error:
            raise unknown_tables(str(revision_of(connection))) from error


def _config(connection: Connection) -> Config:
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # Alembic reads the option as one of an ini file, where a per cent sign has a meaning.
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    return config
