"""Counts the records of each transaction that went to the dead-letter topic."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the column, and an index that finds the few transactions with such records among many."""
    op.add_column("transactions", sa.Column("dead_letters", sa.BigInteger))
    op.create_index("transactions_by_dead_letters", "transactions", ["publication", "dead_letters"])
