"""Databases of operational tables."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import make_url

from contexture.monitoring.database import VERSION_TABLE, open_engine
from contexture.monitoring.tables import METADATA, VIEWS

REAL = os.environ.get("TEST_DATABASE_URL")
"""A real PostgreSQL to run the same tests against, as postgresql+psycopg2://…; its tables are emptied."""
KINDS = ["sqlite", "postgresql"] if REAL else ["sqlite"]


def empty_database(kind: str, folder: Path) -> str:
    """The URL of a database without tables."""
    if kind == "sqlite":
        return f"sqlite:///{folder}/operations.sqlite"
    assert REAL is not None
    engine = open_engine(make_url(REAL))
    with engine.begin() as connection:
        for view in VIEWS:
            connection.execute(text(f"DROP VIEW IF EXISTS {view}"))
        METADATA.drop_all(connection)
        for table in (VERSION_TABLE, "alembic_version"):
            connection.execute(text(f"DROP TABLE IF EXISTS {table}"))
    engine.dispose()
    return REAL


def execute(url: str, *statements: str) -> None:
    """Executes statements in one transaction."""
    engine = open_engine(make_url(url))
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    """What a query finds."""
    engine = open_engine(make_url(url))
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found
