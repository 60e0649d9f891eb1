"""What the people who run Contexture see and set.

Each name is loaded from its module when it is first asked for: DAG files take the pools from here, and SQLAlchemy's
import is not theirs to pay.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.operations.journal import Journal
    from contexture.operations.rows import AttemptRow, RunRow, Sums, TransactionRow, VerificationRow
    from contexture.operations.statuses import TransactionStatus
    from contexture.operations.store import ProducerStore

_MODULES = {
    "AttemptRow": "rows",
    "Journal": "journal",
    "ProducerStore": "store",
    "RunRow": "rows",
    "Sums": "rows",
    "TransactionRow": "rows",
    "TransactionStatus": "statuses",
    "VerificationRow": "rows",
}

__all__ = [
    "AttemptRow",
    "Journal",
    "ProducerStore",
    "RunRow",
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
