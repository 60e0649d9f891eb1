"""The operational tables: what ran, what was sent, what failed. For people; ledger and storage decide.

These are the tables of this version; `migrations` creates them.

Times are Unix milliseconds, as in the tables of registries that users query today.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text

METADATA: Final = MetaData()

_NAME: Final = String(200)


def _of_shard() -> tuple[Column[Any], ...]:
    """Returns the key columns for one shard of an outbox."""
    return (
        Column("publication", _NAME, primary_key=True),
        Column("outbox", _NAME, primary_key=True),
        Column("shard", Integer, primary_key=True, autoincrement=False),
    )


PRODUCERS: Final = Table(
    "producers",
    METADATA,
    Column("publication", _NAME, primary_key=True),
    Column("topics", Text, nullable=False),
    Column("format", _NAME, nullable=False),
    Column("connection", _NAME, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
)

PRODUCER_PROPERTIES: Final = Table(
    "producer_properties",
    METADATA,
    Column("publication", _NAME, primary_key=True),
    Column("line_number", Integer, primary_key=True, autoincrement=False),
    Column("property", Text, nullable=False),
)

CONNECTION_SETTINGS: Final = Table(
    "connection_settings",
    METADATA,
    Column("connection", _NAME, primary_key=True),
    Column("name", _NAME, primary_key=True),
    Column("value", Text, nullable=False),
)

RUNS: Final = Table(
    "runs",
    METADATA,
    Column("publication", _NAME, primary_key=True),
    Column("run", _NAME, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("mode", _NAME),
    Column("sequence", BigInteger),
    Column("outbox", _NAME),
    Column("state", _NAME, nullable=False),
    Column("failed_task", _NAME),
    Column("message", Text),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Index("runs_by_start", "publication", "started_ms"),
)

TRANSACTIONS: Final = Table(
    "transactions",
    METADATA,
    *_of_shard(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("status", Integer, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("source_transaction", BigInteger),
    Column("message", Text),
    Column("updated_ms", BigInteger, nullable=False),
    Column("source_deletions", Boolean),
    Column("dead_letters", BigInteger),
    Index("transactions_by_time", "publication", "updated_ms"),
    Index("transactions_by_status", "status", "publication"),
    Index("transactions_by_dead_letters", "publication", "dead_letters"),
)

ATTEMPTS: Final = Table(
    "attempts",
    METADATA,
    *_of_shard(),
    Column("failed", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("allowed", Integer),
    Column("state", _NAME, nullable=False),
    Column("intent", _NAME, nullable=False),
    Column("message", Text, nullable=False),
    Column("failed_ms", BigInteger, nullable=False),
    Column("next_ms", BigInteger),
)

VERIFICATIONS: Final = Table(
    "verifications",
    METADATA,
    Column("publication", _NAME, primary_key=True),
    Column("verified_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("equal", Boolean, nullable=False),
    Column("summary", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("expected", BigInteger, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("missing", BigInteger, nullable=False),
    Column("extra", BigInteger, nullable=False),
    Column("different", BigInteger, nullable=False),
    Column("misordered", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("report", Text, nullable=False),
)

INTERVENTIONS: Final = Table(
    "interventions",
    METADATA,
    Column("id", _NAME, primary_key=True),
    Column("publication", _NAME, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", _NAME, nullable=False),
    Column("subject", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("run_id", Text),
    Index("interventions_by_time", "publication", "at_ms"),
)

EVENTS: Final = Table(
    "events",
    METADATA,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(32), nullable=False, unique=True),
    Column("type", _NAME, nullable=False),
    Column("publication", _NAME, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    Index("events_by_time", "publication", "at_ms"),
)

VIEWS: Final = (
    "kafa_producer_config",
    "kafa_producer_config_properties",
    "kafka_connection_settings",
    "kafa_producer_tx",
    "kafka_producer_tx",
)
"""The names that users of a registry's own producer know (spelt as there; `kafa_producer_tx` stays for its users)."""
