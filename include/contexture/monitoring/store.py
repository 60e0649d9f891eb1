"""The operational tables for writing: runs, transactions, events, and settings of producers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Update, delete, func, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from contexture.monitoring.database import TableAccess, changed_rows, database_url
from contexture.monitoring.history import History
from contexture.monitoring.own_events import MEMBERS, EventType, OwnEvent, StoredEvent
from contexture.monitoring.rows import (
    InterventionRow,
    TransactionRow,
    TransactionStatus,
    VerificationRow,
    milliseconds,
    moment,
)
from contexture.monitoring.tables import (
    ATTEMPTS,
    CONNECTION_SETTINGS,
    EVENTS,
    INTERVENTIONS,
    PRODUCER_PROPERTIES,
    PRODUCERS,
    RUNS,
    TRANSACTIONS,
    VERIFICATIONS,
)
from contexture.publications import Publication
from contexture.publications.fingerprint import resolve_keys
from contexture.storage.delivery import SendAttempts
from contexture.storage.manifests import RegistryPart

_LOCK_OF_EVENTS: Final = 7_402_002


class EventLog(TableAccess):
    """The table of own events."""

    def append_event(self, happening: OwnEvent) -> None:
        """Inserts an event behind all others; an event that is stored already keeps its position."""
        values = {
            "id": happening.id,
            "type": str(happening.type),
            "publication": happening.publication,
            "at_ms": milliseconds(happening.at),
            "data": json.dumps(happening.data, ensure_ascii=False, separators=(",", ":")),
        }
        with self._writing() as connection:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            statement = insert(EVENTS).values(position=_next_position(connection), **values)
            connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]))

    def events_after(self, position: int, *, until: int | None = None, limit: int) -> list[StoredEvent]:
        """Returns the events behind a position and up to `until`, in order."""
        query = select(EVENTS).where(EVENTS.c.position > position).order_by(EVENTS.c.position)
        if until is not None:
            query = query.where(EVENTS.c.position <= until)
        return [_as_event(row._mapping) for row in self._page(query, limit, 0)]


def _next_position(connection: Connection) -> int:
    """Returns a position behind all that were assigned, in this database and in one that was lost.

    Positions are assigned in the order of commits: a reader that has seen one never finds a smaller one later. SQLite
    has one writer at a time; writers of PostgreSQL wait for each other here.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_OF_EVENTS})"))
    last = connection.scalar(select(func.max(EVENTS.c.position))) or 0
    return max(int(last) + 1, time.time_ns() // 1000)


def _as_event(row: Any) -> StoredEvent:
    at = moment(row["at_ms"])
    assert at is not None
    return StoredEvent(row["position"], row["id"], row["type"], row["publication"], at, row["data"])


class ProducerSettings(TableAccess):
    """The tables of producer properties and connection settings."""

    def set_producer_settings(
        self, publication: str, properties: Sequence[str], *, connection: str, settings: Mapping[str, str]
    ) -> None:
        """Replaces the properties of a publication, in their order, and the settings of its connection.

        Args:
            publication: its name.
            properties: as `properties_of` returns them.
            connection: id of the connection.
            settings: of the Kafka client, without secrets.
        """
        properties_table, settings_table = PRODUCER_PROPERTIES.c, CONNECTION_SETTINGS.c
        with self._writing() as writing:
            writing.execute(
                delete(PRODUCER_PROPERTIES).where(
                    properties_table.publication == publication, properties_table.line_number >= len(properties)
                )
            )
            writing.execute(
                delete(CONNECTION_SETTINGS).where(
                    settings_table.connection == connection, settings_table.name.not_in(settings)
                )
            )
            # Row by row in one order: publications of one connection may be planned at the same time.
            for number, line in enumerate(properties):
                row = {"publication": publication, "line_number": number, "property": line}
                writing.execute(self._replacing(PRODUCER_PROPERTIES, row))
            for name, value in sorted(settings.items()):
                option = {"connection": connection, "name": name, "value": value}
                writing.execute(self._replacing(CONNECTION_SETTINGS, option))


def properties_of(publication: Publication) -> list[str]:
    """Returns the resolved keys of a publication with their defaults: `batches.batch_size=1`, values as in YAML."""
    return list(_properties(publication))


def _properties(publication: Publication) -> Iterator[str]:
    path: list[str] = []
    for each in resolve_keys(publication):
        path = [*path[: each.depth], each.key]
        if each.value is not None:
            yield f"{'.'.join(path)}={each.value}"


_AGES = (
    (RUNS, "started_ms"),
    (TRANSACTIONS, "updated_ms"),
    (ATTEMPTS, "failed_ms"),
    (VERIFICATIONS, "verified_ms"),
    (INTERVENTIONS, "at_ms"),
    (EVENTS, "at_ms"),
)
_NOTHING_SENT = {"status": int(TransactionStatus.PENDING), "records": 0, "bytes": 0, "position": 0}
# The number of the row that says that a registry's change could not be read.
_OF_SOURCE = -1


class RunTables(EventLog, History, ProducerSettings):
    """The operational tables of one database; they are created when they are first needed.

    Any number of processes may write at the same time. The tables are a projection for people: losing them loses no
    record.

    Args:
        url: an SQLAlchemy URL, such as `sqlite:////folder/operations.sqlite` or `postgresql+psycopg2://…`.

    Every method raises a RetriableError when the database does not respond within some two seconds, and a
    ConfigurationError when it has no driver or its tables are of a later version.
    """

    @classmethod
    def of_home(cls, home: str) -> RunTables | None:
        """The tables of `CONTEXTURE_DATABASE`, else of the file below a local home; None for an object store."""
        url = database_url(home)
        return None if url is None else cls(url)

    def set_publication(self, publication: str, *, topics: str, format_name: str, connection: str) -> None:
        """Writes what a publication sends, and through which connection."""
        sent = {"topics": topics, "format": format_name, "connection": connection}
        self._put(PRODUCERS, {"publication": publication, **sent, "updated_ms": _now_ms()})

    def insert_run(self, publication: str, run: str, *, run_id: str, mode: str, sequence: int) -> None:
        """Writes that a run has been planned; planning it again starts it again."""
        planned = {"publication": publication, "run": run, "run_id": run_id, "mode": mode, "sequence": sequence}
        begun = {"outbox": None, "failed_task": None, "message": None, "started_ms": _now_ms(), "ended_ms": None}
        self._put(RUNS, {**planned, "state": "running", **begun})

    def set_run_outbox(self, publication: str, run: str, *, outbox: str) -> None:
        """Writes which outbox a run has prepared, whatever the outcome of the outbox."""
        self._change_run(publication, RUNS.c.run == run, {"outbox": outbox})

    def set_run_succeeded(
        self, publication: str, run: str, *, outbox: str | None = None, not_concluded: str | None = None
    ) -> None:
        """Writes that a run has succeeded; `not_concluded`: why it concluded nothing, as after a dry run."""
        no_failure = {"failed_task": None, "message": not_concluded}
        changes = {"state": "succeeded", **no_failure, "outbox": outbox, "ended_ms": _now_ms()}
        self._change_run(publication, RUNS.c.run == run, changes)

    def set_run_failed(self, publication: str, run_id: str, *, task: str, message: str) -> None:
        """Writes that a task of a run has failed after all retries, also where the run was not planned yet."""
        changes = {"state": "failed", "failed_task": task, "message": message, "ended_ms": _now_ms()}
        if self._change_run(publication, RUNS.c.run_id == run_id, changes) == 0:
            given = {"publication": publication, "run": run_id[:200], "run_id": run_id, "started_ms": _now_ms()}
            self._put(RUNS, given | changes)

    def set_transaction(self, row: TransactionRow, *, dead_letters: int = 0) -> None:
        """Writes the state of a transaction.

        Args:
            row: the transaction.
            dead_letters: how many records of the shard went to the dead-letter topic with this transaction or with
                earlier ones, as the ledger's row states. Those that no earlier row counts are counted in this one.
        """
        values = asdict(row) | {"status": int(row.status)}
        values["updated_ms"] = milliseconds(values.pop("updated_at"))
        with self._writing() as connection:
            if dead_letters:
                values["dead_letters"] = max(0, dead_letters - _counted_before(connection, row))
            connection.execute(self._replacing(TRANSACTIONS, values))

    def set_shard_pending(
        self, publication: str, outbox: str, shard: int, registry: Sequence[RegistryPart] = ()
    ) -> None:
        """Writes that the rest of a shard is about to be sent: its next transaction is pending.

        Where transactions of a registry are known, all of them are pending, each under the registry's own number.
        """
        pending = [
            {"number": part.transaction, "source_transaction": part.id, "source_deletions": part.deletions}
            for part in registry
        ] or [{"number": 0}]
        whose = {"publication": publication, "outbox": outbox, "shard": shard, **_NOTHING_SENT, "updated_ms": _now_ms()}
        with self._writing() as connection:
            known = _numbers(connection, publication, outbox, shard)
            connection.execute(_unsent(publication, outbox, shard).values(**_pending()))
            missing = [whose | each for each in pending if each["number"] not in known] if registry or not known else []
            if missing:
                connection.execute(TRANSACTIONS.insert(), missing)

    def set_shard_status(
        self, publication: str, outbox: str, shard: int, *, status: TransactionStatus, message: str | None = None
    ) -> None:
        """Writes the status of the transactions of a shard that no row shows as sent."""
        self._change(_unsent(publication, outbox, shard).values(**_status_values(status, message)))

    def set_shard_failed(
        self, publication: str, outbox: str, shard: int, *, status: TransactionStatus, message: str
    ) -> None:
        """Writes why the next transaction of a shard is not sent; the following ones stay pending."""
        unsent = TRANSACTIONS.c.status != int(TransactionStatus.SENT)
        first = select(func.min(TRANSACTIONS.c.number)).where(*_shard(publication, outbox, shard), unsent)
        self._change(
            _unsent(publication, outbox, shard)
            .where(TRANSACTIONS.c.number == first.scalar_subquery())
            .values(**_status_values(status, message))
        )

    def set_shard_skipped(self, publication: str, outbox: str, shard: int, *, before: int, message: str) -> None:
        """Writes that the transactions of a shard below a number are in Kafka, regardless of the sender."""
        skipped = _unsent(publication, outbox, shard).where(TRANSACTIONS.c.number < before)
        self._change(skipped.values(**_status_values(TransactionStatus.SENT, message)))

    def insert_source_failure(self, publication: str, run: str, *, message: str) -> None:
        """Writes that a run could not read a change of its source: a transaction of unknown content has failed."""
        whose = {"publication": publication, "outbox": run, "shard": 0, "number": _OF_SOURCE}
        failed = _NOTHING_SENT | _status_values(TransactionStatus.UNEXPECTED, message)
        self._put(TRANSACTIONS, whose | failed)

    def delete_source_failures(self, publication: str) -> None:
        """Deletes the failures of earlier runs to read the source, because a later run has read the changes."""
        failed = TRANSACTIONS.c.number == _OF_SOURCE
        self._change(delete(TRANSACTIONS).where(TRANSACTIONS.c.publication == publication, failed))

    def set_attempt(self, publication: str, attempts: SendAttempts) -> None:
        """Writes a failed send of a shard, or its new state."""
        values = attempts.model_dump(exclude={"format", "failed_at", "next_at"})
        values["failed_ms"] = milliseconds(attempts.failed_at)
        values["next_ms"] = None if attempts.next_at is None else milliseconds(attempts.next_at)
        self._put(ATTEMPTS, {"publication": publication, **values})

    def insert_verification(self, row: VerificationRow) -> None:
        """Writes the result of a verification."""
        values = asdict(row)
        values["verified_ms"] = milliseconds(values.pop("verified_at"))
        self._put(VERIFICATIONS, values)

    def insert_action(self, row: InterventionRow) -> None:
        """Writes what a person did, and the own event about it."""
        values = asdict(row)
        values["at_ms"] = milliseconds(values.pop("at"))
        self._put(INTERVENTIONS, values)
        data = {name: values[name] for name in MEMBERS[EventType.ACTION_PERFORMED]}
        self.append_event(OwnEvent(EventType.ACTION_PERFORMED, row.publication, row.at, row.id, data))

    def delete_before(self, publication: str, *, before: datetime) -> int:
        """Deletes the older rows of a publication; returns how many."""
        limit = milliseconds(before)
        with self._writing() as connection:
            return sum(
                changed_rows(connection, delete(table).where(table.c.publication == publication, table.c[age] < limit))
                for table, age in _AGES
            )

    def _change_run(self, publication: str, which: ColumnElement[bool], changes: Mapping[str, Any]) -> int:
        return self._change(update(RUNS).where(RUNS.c.publication == publication, which).values(**changes))


def _numbers(connection: Connection, publication: str, outbox: str, shard: int) -> set[int]:
    known = select(TRANSACTIONS.c.number).where(*_shard(publication, outbox, shard))
    return set(connection.scalars(known))


def _counted_before(connection: Connection, row: TransactionRow) -> int:
    """Returns how many dead letters the rows of the shard's earlier transactions count."""
    earlier = (*_shard(row.publication, row.outbox, row.shard), TRANSACTIONS.c.number < row.number)
    return int(connection.scalar(select(func.sum(TRANSACTIONS.c.dead_letters)).where(*earlier)) or 0)


def _pending() -> dict[str, Any]:
    return _status_values(TransactionStatus.PENDING, None)


def _status_values(status: TransactionStatus, message: str | None) -> dict[str, Any]:
    return {"status": int(status), "message": message, "updated_ms": _now_ms()}


def _shard(publication: str, outbox: str, shard: int) -> tuple[ColumnElement[bool], ...]:
    table = TRANSACTIONS.c
    return table.publication == publication, table.outbox == outbox, table.shard == shard


def _unsent(publication: str, outbox: str, shard: int) -> Update:
    unsent = TRANSACTIONS.c.status != int(TransactionStatus.SENT)
    return update(TRANSACTIONS).where(*_shard(publication, outbox, shard), unsent)


def _now_ms() -> int:
    return milliseconds(datetime.now(UTC))
