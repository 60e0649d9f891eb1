"""All operational tables, and the views by the names that users of a registry's own producer know.

The tables are those of the code as long as this is the only revision: nothing is released that has older ones. The
change that adds a second revision writes out here what this one creates.
"""

from __future__ import annotations

from alembic import op

from contexture.monitoring.tables import METADATA

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the tables and views."""
    METADATA.create_all(op.get_bind(), checkfirst=False)
    _views()


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
