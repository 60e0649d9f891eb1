"""Producers, runs, transactions and failed sends."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NAME = sa.String(200)


def upgrade() -> None:
    """Makes the first tables, and the views by the names that users of a registry's own producer know."""
    _producers_and_runs()
    _transactions()
    _attempts()
    op.execute("CREATE VIEW kafa_producer_config AS SELECT publication AS id, topics AS topic, format FROM producers")
    op.execute(
        "CREATE VIEW kafa_producer_tx AS SELECT "
        "COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, "
        "publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, "
        "records AS tx_messages FROM transactions"
    )


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
    )
    op.create_index("transactions_by_time", "transactions", ["publication", "updated_ms"])
    op.create_index("transactions_by_status", "transactions", ["status", "publication"])


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
