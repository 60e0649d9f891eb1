"""Of which version the operational tables of a database are; nothing is made or changed by looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from contexture.errors import ConfigurationError, RetriableError
from contexture.operations.database import HEAD, file_is_missing, migrate, open_engine, revision_of

FORMER_TABLE: Final = "schema_version"
"""Where versions of Contexture before Alembic kept the number of the tables' version."""
LAST_FORMER: Final = 5


@dataclass(frozen=True, slots=True)
class TablesFound:
    """What is there.

    Attributes:
        address: of the database, without the password.
        found: the version of the tables; None where there are none.
        running: publications and Airflow runs of which no end was noted; they may have ended without being noted.
    """

    address: str
    found: str | None
    running: tuple[tuple[str, str], ...] = ()

    @property
    def is_later(self) -> bool:
        """Whether a later Contexture has made them."""
        return self.found is not None and self.found > HEAD

    @property
    def is_current(self) -> bool:
        """Whether nothing need be done; tables that are not there yet are made when they are needed."""
        return self.found in {None, HEAD}


def look(url: URL) -> TablesFound:
    """Looks into a database.

    Raises:
        ConfigurationError: there is no driver for it.
        RetriableError: it does not answer.
    """
    address = url.render_as_string(hide_password=True)
    if file_is_missing(url):
        return TablesFound(address, None)
    with _connected(url, address) as connection:
        return TablesFound(address, _found(connection), tuple(_running(connection)))


def bring_up_tables(url: URL) -> None:
    """Brings the tables of a database to this version.

    Raises:
        ConfigurationError: there is no driver for it, or the tables are of a later version.
        RetriableError: it does not answer, or its user may not change them; they are as they were.
    """
    engine = open_engine(url)
    try:
        migrate(engine)
    except SQLAlchemyError as error:
        raise RetriableError(
            f"the operational tables in {url.render_as_string(hide_password=True)} could not be brought to version "
            f"{HEAD} ({type(error).__name__})",
            next_step="see that the database runs, that nobody holds a lock on the tables, and that its user owns "
            "them; then call it again: it goes on",
        ) from error
    finally:
        engine.dispose()


def former_version(connection: Connection) -> int | None:
    """The number of tables that were made before Alembic; None where there are none."""
    if not inspect(connection).has_table(FORMER_TABLE):
        return None
    found = connection.scalar(text(f"SELECT max(version) FROM {FORMER_TABLE}"))  # noqa: S608 - a constant
    return None if found is None else int(found)


def later_tables(revision: str) -> ConfigurationError:
    """The error for tables that a later Contexture has made."""
    return ConfigurationError(
        f"the operational tables were written by a later Contexture: they are of version {revision}, "
        f"and this one knows {HEAD}",
        next_step="upgrade Contexture here too, or give it a database of its own (CONTEXTURE_DATABASE)",
    )


@contextmanager
def _connected(url: URL, address: str) -> Iterator[Connection]:
    engine = open_engine(url)
    try:
        with engine.connect().execution_options(reads=True) as connection:
            yield connection
    except SQLAlchemyError as error:
        raise RetriableError(
            f"the operational tables in {address} do not answer ({type(error).__name__})",
            next_step="see that the database runs and CONTEXTURE_DATABASE names it",
        ) from error
    finally:
        engine.dispose()


def _found(connection: Connection) -> str | None:
    found = revision_of(connection)
    if found is not None:
        return found
    former = former_version(connection)
    return None if former is None else f"{former:04d}"


def _running(connection: Connection) -> list[tuple[str, str]]:
    # The same in all versions of the tables.
    if not inspect(connection).has_table("runs"):
        return []
    found = connection.execute(text("SELECT publication, run_id FROM runs WHERE state = 'running' ORDER BY 1, 2"))
    return [(str(publication), str(run_id)) for publication, run_id in found]
