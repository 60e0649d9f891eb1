"""One database of operational tables: its address, its connections, and what its failures mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from threading import local
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Select, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, CursorResult, Row, make_url
from sqlalchemy.exc import SQLAlchemyError

from contexture.errors import RetriableError
from contexture.operations.database import file_is_missing, migrate, open_engine


class TableAccess:
    """Reads and writes rows; the tables are made when they are first needed.

    Args:
        url: an SQLAlchemy URL, such as `sqlite:////folder/operations.sqlite` or `postgresql+psycopg2://…`.
    """

    def __init__(self, url: URL | str) -> None:
        self._url = make_url(url)
        self._shared = local()

    @property
    def address(self) -> str:
        """Where it is, without the password."""
        return self._url.render_as_string(hide_password=True)

    @property
    def is_there(self) -> bool:
        """False for a SQLite file that nobody has written yet; reading would make it."""
        return not file_is_missing(self._url)

    def close(self) -> None:
        """Gives the connections back."""
        if "_engine" in self.__dict__:
            self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        engine = open_engine(self._url)
        migrate(engine)
        return engine

    @contextmanager
    def one_connection(self) -> Iterator[None]:
        """Within the block, what this thread asks goes through one connection: otherwise each question has its own.

        To a database beyond a network that saves the two journeys in three that begin and end each of them.
        """
        with ExitStack() as stack:
            with self._translating():
                connection = stack.enter_context(self._engine.connect().execution_options(reads=True))
            self._shared.connection = connection
            stack.callback(delattr, self._shared, "connection")
            yield

    def _put(self, table: Table, values: Mapping[str, Any]) -> None:
        """Writes a row in place of one with the same key."""
        self._change(self._replacing(table, values))

    def _replacing(self, table: Table, values: Mapping[str, Any]) -> Executable:
        insert = postgresql.insert if self._url.get_backend_name() == "postgresql" else sqlite.insert
        keys = [column.name for column in table.primary_key]
        statement = insert(table).values(**values)
        changes = {name: statement.excluded[name] for name in values if name not in keys}
        return statement.on_conflict_do_update(index_elements=keys, set_=changes)

    def _change(self, statement: Executable) -> int:
        """Executes a statement; how many rows it changed."""
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
                f"the operational tables in {self.address} do not answer ({type(error).__name__})",
                next_step="see that the database runs and CONTEXTURE_DATABASE names it; no record depends on it",
            ) from error


def changed_rows(connection: Connection, statement: Executable) -> int:
    """Executes a statement within a transaction; how many rows it changed."""
    result = connection.execute(statement)
    assert isinstance(result, CursorResult)
    return result.rowcount
