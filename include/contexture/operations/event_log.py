"""The table of Contexture's own events: an order that never changes, so that a reader can go on where it stopped."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from sqlalchemy import Connection, func, select, text
from sqlalchemy.dialects import postgresql, sqlite

from contexture.operations.access import TableAccess
from contexture.operations.events import Happening, ToldEvent
from contexture.operations.rows import milliseconds, moment
from contexture.operations.tables import EVENTS

_LOCK_OF_EVENTS: Final = 7_402_002


class EventLog(TableAccess):
    """Writes and reads events."""

    def happened(self, happening: Happening) -> None:
        """Keeps an event at the end of all; one that is there already stays where it is."""
        values = {
            "id": happening.id,
            "type": str(happening.type),
            "publication": happening.publication,
            "at_ms": milliseconds(happening.at),
            "data": json.dumps(happening.data, ensure_ascii=False, separators=(",", ":")),
        }
        with self._writing() as connection:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            statement = insert(EVENTS).values(place=_next_place(connection), **values)
            connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]))

    def events_after(self, place: int, *, until: int | None = None, limit: int) -> list[ToldEvent]:
        """Events behind a place and up to another one, in order."""
        query = select(EVENTS).where(EVENTS.c.place > place).order_by(EVENTS.c.place)
        if until is not None:
            query = query.where(EVENTS.c.place <= until)
        return [_as_event(row._mapping) for row in self._page(query, limit, 0)]


def _next_place(connection: Connection) -> int:
    """A place behind all that were given, in this database and in one that was lost.

    Places are given in the order of commits: a reader that has seen one will never find a smaller one later. SQLite has
    one writer at a time; PostgreSQL's wait for each other here.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_OF_EVENTS})"))
    last = connection.scalar(select(func.max(EVENTS.c.place))) or 0
    return max(int(last) + 1, time.time_ns() // 1000)


def _as_event(row: Any) -> ToldEvent:
    at = moment(row["at_ms"])
    assert at is not None
    return ToldEvent(row["place"], row["id"], row["type"], row["publication"], at, row["data"])
