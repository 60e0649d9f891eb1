"""All operational tables, and the views by the names that users of a registry's own producer know."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NAME = sa.String(200)


def upgrade() -> None:
    """Creates the tables and views."""
    _producers_and_runs()
    _transactions()
    _attempts()
    _verifications()
    _interventions_and_events()
    _settings()
    _views()


def _producers_and_runs() -> None:
    op.create_table(
        "producers",
        sa.Column("publication", _NAME, primary_key=True),
        sa.Column("topics", sa.Text, nullable=False),
        sa.Column("format", _NAME, nullable=False),
        sa.Column("connection", _NAME, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("publication", _NAME, primary_key=True),
        sa.Column("run", _NAME, primary_key=True),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("mode", _NAME),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("outbox", _NAME),
        sa.Column("state", _NAME, nullable=False),
        sa.Column("failed_task", _NAME),
        sa.Column("message", sa.Text),
        sa.Column("started_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_ms", sa.BigInteger),
    )
    op.create_index("runs_by_start", "runs", ["publication", "started_ms"])


def _transactions() -> None:
    op.create_table(
        "transactions",
        sa.Column("publication", _NAME, primary_key=True),
        sa.Column("outbox", _NAME, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("records", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("source_transaction", sa.BigInteger),
        sa.Column("message", sa.Text),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
        sa.Column("source_deletions", sa.Boolean),
        sa.Column("dead_letters", sa.BigInteger),
    )
    op.create_index("transactions_by_time", "transactions", ["publication", "updated_ms"])
    op.create_index("transactions_by_status", "transactions", ["status", "publication"])
    # Finds the few transactions with such records among many.
    op.create_index("transactions_by_dead_letters", "transactions", ["publication", "dead_letters"])


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("publication", _NAME, primary_key=True),
        sa.Column("outbox", _NAME, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("failed", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("allowed", sa.Integer),
        sa.Column("state", _NAME, nullable=False),
        sa.Column("intent", _NAME, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("failed_ms", sa.BigInteger, nullable=False),
        sa.Column("next_ms", sa.BigInteger),
    )


def _verifications() -> None:
    counts = ("sequence", "expected", "records", "missing", "extra", "different", "misordered")
    op.create_table(
        "verifications",
        sa.Column("publication", _NAME, primary_key=True),
        sa.Column("verified_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("equal", sa.Boolean, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in counts),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
    )


def _interventions_and_events() -> None:
    op.create_table(
        "interventions",
        sa.Column("id", _NAME, primary_key=True),
        sa.Column("publication", _NAME, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", _NAME, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
    )
    op.create_index("interventions_by_time", "interventions", ["publication", "at_ms"])
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("type", _NAME, nullable=False),
        sa.Column("publication", _NAME, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_index("events_by_time", "events", ["publication", "at_ms"])


def _settings() -> None:
    op.create_table(
        "producer_properties",
        sa.Column("publication", _NAME, primary_key=True),
        sa.Column("line_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("property", sa.Text, nullable=False),
    )
    op.create_table(
        "connection_settings",
        sa.Column("connection", _NAME, primary_key=True),
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )


def _views() -> None:
    op.execute("CREATE VIEW kafa_producer_config AS SELECT publication AS id, topics AS topic, format FROM producers")
    for name in ("kafa_producer_tx", "kafka_producer_tx"):
        op.execute(
            f"CREATE VIEW {name} AS SELECT "  # noqa: S608 - two constants
            "COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, "
            "publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, "
            "records AS tx_messages FROM transactions"
        )
    op.execute(
        "CREATE VIEW kafa_producer_config_properties AS "
        "SELECT publication AS id, line_number, property FROM producer_properties"
    )
    op.execute(
        "CREATE VIEW kafka_connection_settings AS "
        "SELECT name AS conn_key, value AS conn_value, connection FROM connection_settings"
    )
