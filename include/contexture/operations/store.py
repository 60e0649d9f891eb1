"""Writing and reading the operational tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Select, Table, Update, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Row, make_url
from sqlalchemy.exc import SQLAlchemyError

from contexture.errors import RetriableError
from contexture.operations.database import database_url, migrate, open_engine
from contexture.operations.rows import AttemptRow, RunRow, Sums, TransactionRow, milliseconds, moment
from contexture.operations.statuses import TransactionStatus
from contexture.operations.tables import ATTEMPTS, PRODUCERS, RUNS, TRANSACTIONS
from contexture.outbox.attempts import SendAttempts

_PAGE = 50


class ProducerStore:
    """The operational tables of one database; they are made when they are first needed.

    Any number of processes may write at once. What it holds is a projection for people: losing it loses no record.

    Args:
        url: an SQLAlchemy URL, such as `sqlite:////folder/operations.sqlite` or `postgresql+psycopg2://…`.

    Every method raises a RetriableError when the database does not answer within some two seconds, and a
    ConfigurationError when it has no driver or its tables are of a newer version.
    """

    def __init__(self, url: URL | str) -> None:
        self._url = make_url(url)

    @classmethod
    def of_home(cls, home: str) -> ProducerStore | None:
        """The store of `CONTEXTURE_DATABASE`, else of the file below a local home; None for a home elsewhere."""
        url = database_url(home)
        return None if url is None else cls(url)

    @property
    def address(self) -> str:
        """Where it is, without the password."""
        return self._url.render_as_string(hide_password=True)

    @property
    def is_there(self) -> bool:
        """False for a SQLite file that nobody has written yet; reading would make it."""
        return self._url.get_backend_name() != "sqlite" or Path(self._url.database or "").exists()

    def close(self) -> None:
        """Gives the connections back."""
        if "_engine" in self.__dict__:
            self._engine.dispose()

    # Writing

    def producer_is(self, publication: str, *, topics: str, format_name: str, connection: str) -> None:
        """Keeps what a publication sends, and where to."""
        self._put(
            PRODUCERS,
            {
                "publication": publication,
                "topics": topics,
                "format": format_name,
                "connection": connection,
                "updated_ms": _now_ms(),
            },
        )

    def run_started(self, publication: str, run: str, *, run_id: str, mode: str, sequence: int) -> None:
        """Keeps that a run has been planned; planning it again begins it again."""
        self._put(
            RUNS,
            {
                "publication": publication,
                "run": run,
                "run_id": run_id,
                "mode": mode,
                "sequence": sequence,
                "outbox": None,
                "state": "running",
                "failed_task": None,
                "message": None,
                "started_ms": _now_ms(),
                "ended_ms": None,
            },
        )

    def run_ended(self, publication: str, run: str, *, outbox: str | None = None) -> None:
        """Keeps that a run has come to its good end."""
        changes = {"state": "succeeded", "failed_task": None, "message": None, "outbox": outbox, "ended_ms": _now_ms()}
        self._change_run(publication, RUNS.c.run == run, changes)

    def run_failed(self, publication: str, run_id: str, *, task: str, message: str) -> None:
        """Keeps that a task of a run has failed for good. A run that failed before it was planned is kept too."""
        changes = {"state": "failed", "failed_task": task, "message": message, "ended_ms": _now_ms()}
        if self._change_run(publication, RUNS.c.run_id == run_id, changes) == 0:
            given = {"publication": publication, "run": run_id[:200], "run_id": run_id, "started_ms": _now_ms()}
            self._put(RUNS, given | changes)

    def transaction_is(self, row: TransactionRow) -> None:
        """Keeps what has become of a transaction."""
        values = asdict(row) | {"status": int(row.status)}
        values["updated_ms"] = milliseconds(values.pop("updated_at"))
        self._put(TRANSACTIONS, values)

    def shard_begins(self, publication: str, outbox: str, shard: int) -> None:
        """Keeps that the rest of a shard is about to be sent: its next transaction is pending."""
        row = {"publication": publication, "outbox": outbox, "shard": shard}
        with self._writing() as connection:
            known = select(func.count()).select_from(TRANSACTIONS).where(*_shard(publication, outbox, shard))
            if connection.scalar(known):
                unsent = {"status": int(TransactionStatus.PENDING), "message": None, "updated_ms": _now_ms()}
                connection.execute(_unsent(publication, outbox, shard).values(**unsent))
            else:
                first = {"number": 0, "status": 0, "records": 0, "bytes": 0, "position": 0, "updated_ms": _now_ms()}
                connection.execute(TRANSACTIONS.insert().values(**row, **first))

    def shard_ended(
        self, publication: str, outbox: str, shard: int, *, status: TransactionStatus, message: str | None = None
    ) -> None:
        """Keeps what has become of the transactions of a shard that are not sent as far as is known here."""
        changes = {"status": int(status), "message": message, "updated_ms": _now_ms()}
        with self._writing() as connection:
            connection.execute(_unsent(publication, outbox, shard).values(**changes))

    def attempt_is(self, publication: str, attempts: SendAttempts) -> None:
        """Keeps a failed send of a shard, or what became of it."""
        values = attempts.model_dump(exclude={"failed_at", "next_at"})
        values["failed_ms"] = milliseconds(attempts.failed_at)
        values["next_ms"] = None if attempts.next_at is None else milliseconds(attempts.next_at)
        self._put(ATTEMPTS, {"publication": publication, **values})

    def forget(self, publication: str, *, before: datetime) -> int:
        """Removes what is older; returns how many rows went."""
        limit = milliseconds(before)
        ages = ((RUNS, RUNS.c.started_ms), (TRANSACTIONS, TRANSACTIONS.c.updated_ms), (ATTEMPTS, ATTEMPTS.c.failed_ms))
        with self._writing() as connection:
            return sum(
                connection.execute(delete(table).where(table.c.publication == publication, age < limit)).rowcount
                for table, age in ages
            )

    # Reading

    def runs(self, publication: str | None = None, *, limit: int = _PAGE, offset: int = 0) -> list[RunRow]:
        """Runs, the latest first."""
        query = _of(select(RUNS), RUNS, publication).order_by(RUNS.c.started_ms.desc())
        return [_run(row) for row in self._page(query, limit, offset)]

    def transactions(
        self,
        publication: str | None = None,
        *,
        status: TransactionStatus | None = None,
        limit: int = _PAGE,
        offset: int = 0,
    ) -> list[TransactionRow]:
        """Transactions, the latest first; of one status if given."""
        query = _of(select(TRANSACTIONS), TRANSACTIONS, publication)
        if status is not None:
            query = query.where(TRANSACTIONS.c.status == int(status))
        order = (TRANSACTIONS.c.updated_ms.desc(), TRANSACTIONS.c.shard, TRANSACTIONS.c.number.desc())
        return [_transaction(row) for row in self._page(query.order_by(*order), limit, offset)]

    def attempts(
        self, publication: str | None = None, outbox: str | None = None, *, limit: int = _PAGE, offset: int = 0
    ) -> list[AttemptRow]:
        """Failed sends, the latest first."""
        query = _of(select(ATTEMPTS), ATTEMPTS, publication)
        if outbox is not None:
            query = query.where(ATTEMPTS.c.outbox == outbox)
        order = (ATTEMPTS.c.failed_ms.desc(), ATTEMPTS.c.failed.desc())
        return [_attempt(row) for row in self._page(query.order_by(*order), limit, offset)]

    def sums(self, publication: str) -> Sums:
        """What the transactions of a publication come to."""
        table = TRANSACTIONS
        query = (
            select(table.c.status, func.count(), func.sum(table.c.records), func.sum(table.c.bytes))
            .where(table.c.publication == publication)
            .group_by(table.c.status)
        )
        with self._reading() as connection:
            found = {TransactionStatus(row[0]): row for row in connection.execute(query)}
        sent = found.get(TransactionStatus.SENT)
        last = self.transactions(publication, status=TransactionStatus.SENT, limit=1)
        return Sums(
            by_status={status: int(row[1]) for status, row in sorted(found.items())},
            records=int(sent[2]) if sent else 0,
            bytes=int(sent[3]) if sent else 0,
            last_sent=last[0] if last else None,
        )

    @cached_property
    def _engine(self) -> Engine:
        engine = open_engine(self._url)
        migrate(engine)
        return engine

    def _put(self, table: Table, values: Mapping[str, Any]) -> None:
        insert = postgresql.insert if self._url.get_backend_name() == "postgresql" else sqlite.insert
        keys = [column.name for column in table.primary_key]
        statement = insert(table).values(**values)
        changes = {name: statement.excluded[name] for name in values if name not in keys}
        with self._writing() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changes))

    def _change_run(self, publication: str, which: Any, changes: Mapping[str, Any]) -> int:
        statement = update(RUNS).where(RUNS.c.publication == publication, which).values(**changes)
        with self._writing() as connection:
            return connection.execute(statement).rowcount

    def _page(self, query: Select[Any], limit: int, offset: int) -> Sequence[Row[Any]]:
        with self._reading() as connection:
            return connection.execute(query.limit(limit).offset(offset)).all()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._translating(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._translating(), self._engine.connect().execution_options(reads=True) as connection:
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


def _shard(publication: str, outbox: str, shard: int) -> tuple[ColumnElement[bool], ...]:
    table = TRANSACTIONS.c
    return table.publication == publication, table.outbox == outbox, table.shard == shard


def _unsent(publication: str, outbox: str, shard: int) -> Update:
    unsent = TRANSACTIONS.c.status != int(TransactionStatus.SENT)
    return update(TRANSACTIONS).where(*_shard(publication, outbox, shard), unsent)


def _of(query: Select[Any], table: Table, publication: str | None) -> Select[Any]:
    return query if publication is None else query.where(table.c.publication == publication)


def _now_ms() -> int:
    return milliseconds(datetime.now(UTC))


def _run(row: Row[Any]) -> RunRow:
    values = dict(row._mapping)
    return RunRow(started_at=_pop(values, "started_ms"), ended_at=moment(values.pop("ended_ms")), **values)


def _transaction(row: Row[Any]) -> TransactionRow:
    values = dict(row._mapping)
    status = TransactionStatus(values.pop("status"))
    return TransactionRow(status=status, updated_at=_pop(values, "updated_ms"), **values)


def _attempt(row: Row[Any]) -> AttemptRow:
    values = dict(row._mapping)
    return AttemptRow(failed_at=_pop(values, "failed_ms"), next_at=moment(values.pop("next_ms")), **values)


def _pop(values: dict[str, Any], column: str) -> datetime:
    found = moment(values.pop(column))
    assert found is not None
    return found
