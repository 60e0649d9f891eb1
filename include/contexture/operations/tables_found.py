"""Of which version the operational tables of a database are; nothing is made or changed by looking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from contexture.errors import ConfigurationError, RetriableError
from contexture.operations.database import HEAD, file_is_missing, open_engine, revision_of


@dataclass(frozen=True, slots=True)
class TablesFound:
    """What is there.

    Attributes:
        address: of the database, without the password.
        found: the version of the tables; None where there are none.
    """

    address: str
    found: str | None

    @property
    def is_known(self) -> bool:
        """Whether this Contexture reads and writes them; tables that are not there yet are made when needed."""
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
        return TablesFound(address, revision_of(connection))


def unknown_tables(revision: str) -> ConfigurationError:
    """The error for tables that another version of Contexture has made."""
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
            f"the operational tables in {address} do not answer ({type(error).__name__})",
            next_step="see that the database runs and CONTEXTURE_DATABASE names it",
        ) from error
    finally:
        engine.dispose()
