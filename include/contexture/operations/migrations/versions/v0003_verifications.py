"""Keeps what verifications of the topics found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_COUNTS = ("sequence", "held", "records", "missing", "extra", "different", "misordered")


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "verifications",
        sa.Column("publication", sa.String(200), primary_key=True),
        sa.Column("verified_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("equal", sa.Boolean, nullable=False),
        sa.Column("told", sa.Text, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in _COUNTS),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
    )
