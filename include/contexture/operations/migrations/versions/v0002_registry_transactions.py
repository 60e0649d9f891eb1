"""Tells a registry transaction's deletions from its additions, and spells a view as registries do."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the column, and the view beside the one that was spelt otherwise."""
    op.add_column("transactions", sa.Column("source_deletions", sa.Boolean))
    op.execute(
        "CREATE VIEW kafka_producer_tx AS SELECT "
        "COALESCE(CAST(source_transaction AS VARCHAR(20)), outbox || '/' || shard || '/' || number) AS tx_id, "
        "publication AS producer_id, status AS tx_status, updated_ms AS tx_last_updated, bytes AS tx_size, "
        "records AS tx_messages FROM transactions"
    )
