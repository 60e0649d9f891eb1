"""Run by Alembic for every command: on the connection that `migrating` has opened, and in its transaction."""

from __future__ import annotations

from alembic import context

from contexture.operations.database import VERSION_TABLE
from contexture.operations.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, version_table=VERSION_TABLE
)
with context.begin_transaction():
    context.run_migrations()
