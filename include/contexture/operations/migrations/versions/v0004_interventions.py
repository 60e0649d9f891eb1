"""Keeps what people did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "interventions",
        sa.Column("id", sa.String(200), primary_key=True),
        sa.Column("publication", sa.String(200), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", sa.String(200), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text),
    )
    op.create_index("interventions_by_time", "interventions", ["publication", "at_ms"])
