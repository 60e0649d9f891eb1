"""Sending exactly once: the publisher, the ledger that proves it, claims, dead letters, and what restores them.

Each name is loaded from its module when it is first requested: importing this package loads no Kafka client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.sending.claims import ClaimReport, Claims
    from contexture.sending.context import (
        Encode,
        Progress,
        SendProgress,
        encoded_values,
        one_after_the_other,
        partitioned,
        timed_by_sending,
    )
    from contexture.sending.interfaces import ShardReader
    from contexture.sending.ledger import Ledger, LedgerEntry, SenderNames
    from contexture.sending.publisher import Publisher
    from contexture.sending.shard_sender import AfterFailure
    from contexture.sending.size_limits import LARGEST_RECORD_BYTES, for_structures, structure_topic_config
    from contexture.sending.transactions import ShardResult

_MODULES = {
    "AfterFailure": "shard_sender",
    "ClaimReport": "claims",
    "Claims": "claims",
    "Encode": "context",
    "LARGEST_RECORD_BYTES": "size_limits",
    "Ledger": "ledger",
    "LedgerEntry": "ledger",
    "Progress": "context",
    "Publisher": "publisher",
    "SendProgress": "context",
    "SenderNames": "ledger",
    "ShardReader": "interfaces",
    "ShardResult": "transactions",
    "encoded_values": "context",
    "for_structures": "size_limits",
    "one_after_the_other": "context",
    "partitioned": "context",
    "structure_topic_config": "size_limits",
    "timed_by_sending": "context",
}

__all__ = [
    "LARGEST_RECORD_BYTES",
    "AfterFailure",
    "ClaimReport",
    "Claims",
    "Encode",
    "Ledger",
    "LedgerEntry",
    "Progress",
    "Publisher",
    "SendProgress",
    "SenderNames",
    "ShardReader",
    "ShardResult",
    "encoded_values",
    "for_structures",
    "one_after_the_other",
    "partitioned",
    "structure_topic_config",
    "timed_by_sending",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
