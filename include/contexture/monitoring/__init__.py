"""Monitoring: the operational tables, own events, and alerts: what is recorded about runs.

Each name is loaded from its module when it is first requested: DAG files must not pay for the import of SQLAlchemy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.monitoring.journal import RunTableWriter
    from contexture.monitoring.rows import AttemptRow, RunRow, Sums, TransactionRow, TransactionStatus, VerificationRow
    from contexture.monitoring.store import RunTables

_MODULES = {
    "AttemptRow": "rows",
    "RunTableWriter": "journal",
    "RunTables": "store",
    "RunRow": "rows",
    "Sums": "rows",
    "TransactionRow": "rows",
    "TransactionStatus": "rows",
    "VerificationRow": "rows",
}

__all__ = [
    "AttemptRow",
    "RunRow",
    "RunTableWriter",
    "RunTables",
    "Sums",
    "TransactionRow",
    "TransactionStatus",
    "VerificationRow",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
