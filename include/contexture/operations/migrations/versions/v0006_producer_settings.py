"""Keeps by which settings a publication sends, under the names that users of a registry's own producer know."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Makes the tables of properties and connection settings, and a view of each."""
    op.create_table(
        "producer_properties",
        sa.Column("publication", sa.String(200), primary_key=True),
        sa.Column("line_number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("property", sa.Text, nullable=False),
    )
    op.create_table(
        "connection_settings",
        sa.Column("connection", sa.String(200), primary_key=True),
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.execute(
        "CREATE VIEW kafa_producer_config_properties AS "
        "SELECT publication AS id, line_number, property FROM producer_properties"
    )
    op.execute(
        "CREATE VIEW kafka_connection_settings AS "
        "SELECT name AS conn_key, value AS conn_value, connection FROM connection_settings"
    )
