"""What PostgreSQL holds and is asked: rows and bytes of tables, statements, connections by who has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.cluster.postgres import DATABASES, PostgresServer

GONE = "processes that had ended a moment later"
_TABLES = "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
_CLIENTS = (
    "SELECT datname, client_port FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = ANY(%s)"
)
_CALLS = """
    SELECT coalesce(sum(calls), 0) FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid
    WHERE datname = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Stock:
    """What a database holds at a moment.

    Attributes:
        rows: by table.
        bytes: by table, with its indexes and what is in no use any more.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    bytes: Mapping[str, int] = field(default_factory=dict)

    def since(self, before: Stock) -> Stock:
        """What has come since another moment; tables that stayed as they were are left out."""
        return Stock(_grown(self.rows, before.rows), _grown(self.bytes, before.bytes))


class Databases:
    """The databases of Airflow and of the operational tables; a connection of its own for each question."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def prepare(self) -> None:
        """Makes the statistics of statements readable."""
        self._ask("postgres", "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def stock(self) -> dict[str, Stock]:
        """Of each database. Counting is asking, too: take `statements` outside of it."""
        return {name: self._stock(name) for name in DATABASES}

    def statements(self) -> int:
        """That were done in all since the start, with those that begin and end a transaction."""
        return int(self._ask("postgres", _CALLS, (list(DATABASES),))[0][0])

    def clients(self) -> list[tuple[str, int]]:
        """The database and the client's port of each connection."""
        return [(str(name), int(port)) for name, port in self._ask("postgres", _CLIENTS, (list(DATABASES),))]

    def _stock(self, database: str) -> Stock:
        tables = [str(name) for (name,) in self._ask(database, _TABLES)]
        rows = {name: int(self._ask(database, f"SELECT count(*) FROM {name}")[0][0]) for name in tables}
        sizes = {name: int(self._ask(database, "SELECT pg_total_relation_size(%s)", (name,))[0][0]) for name in tables}
        return Stock(rows, sizes)

    def _ask(self, database: str, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        import psycopg2

        address = self._server.url(database if database in DATABASES else "postgres", "postgresql")
        connection = psycopg2.connect(address, connect_timeout=30)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement, values or None)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


def queue_clients(url: str) -> list[int]:
    """The port of each client of a Redis, ours left out."""
    import redis

    with redis.Redis.from_url(url, client_name="bench") as client:
        return ports_of(client.client_list())


def ports_of(clients: Iterable[Mapping[str, str]]) -> list[int]:
    """From the answer to CLIENT LIST."""
    return [int(each["addr"].rsplit(":", 1)[1]) for each in clients if each.get("name") != "bench"]


def by_owner(ports: Iterable[int], owners: Mapping[int, str]) -> dict[str, int]:
    """How many connections each part has, by the ports they come from; those that have just gone are `GONE`."""
    return dict(Counter(owners.get(port, GONE) for port in ports))


def _grown(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    found = {name: number - before.get(name, 0) for name, number in now.items()}
    return {name: number for name, number in found.items() if number}
