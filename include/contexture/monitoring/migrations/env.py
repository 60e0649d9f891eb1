"""Run by Alembic for every command, on the connection and in the transaction that `database` has opened."""

from __future__ import annotations

from alembic import context

from contexture.monitoring.database import VERSION_TABLE
from contexture.monitoring.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, version_table=VERSION_TABLE
)
with context.begin_transaction():
    context.run_migrations()
