"""Monitoring: the operational tables, own events, and alerts: what is recorded about runs.

Each name is loaded from its module when it is first requested, because DAG files must not import SQLAlchemy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.lazy_names import load_on_request

if TYPE_CHECKING:
    from contexture.monitoring.journal import RunTableWriter as RunTableWriter
    from contexture.monitoring.rows import RunRow as RunRow
    from contexture.monitoring.rows import Sums as Sums
    from contexture.monitoring.rows import TransactionRow as TransactionRow
    from contexture.monitoring.rows import TransactionStatus as TransactionStatus
    from contexture.monitoring.rows import VerificationRow as VerificationRow
    from contexture.monitoring.store import RunTables as RunTables

__getattr__ = load_on_request(
    __name__,
    {
        "journal": "RunTableWriter",
        "rows": "RunRow Sums TransactionRow TransactionStatus VerificationRow",
        "store": "RunTables",
    },
)
