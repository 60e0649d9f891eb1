"""Sending exactly once: the publisher, the ledger that proves it, claims, dead letters, and what restores them.

Each name is loaded from its module when it is first requested: importing this package loads no Kafka client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contexture.sending.attempts import AfterFailure
    from contexture.sending.claims import ClaimReport, Claims
    from contexture.sending.encoding import Encode, encoded_values, one_after_the_other, partitioned
    from contexture.sending.ledger import Ledger
    from contexture.sending.ledger_entry import LedgerEntry
    from contexture.sending.progress import Progress, SendProgress
    from contexture.sending.publisher import Publisher
    from contexture.sending.record_size import LARGEST_RECORD_BYTES, for_structures, structure_topic_config
    from contexture.sending.record_times import timed_by_sending
    from contexture.sending.senders import SenderNames
    from contexture.sending.sending_ports import ShardReader
    from contexture.sending.tally import ShardResult

_MODULES = {
    "AfterFailure": "attempts",
    "ClaimReport": "claims",
    "Claims": "claims",
    "Encode": "encoding",
    "LARGEST_RECORD_BYTES": "record_size",
    "Ledger": "ledger",
    "LedgerEntry": "ledger_entry",
    "Progress": "progress",
    "Publisher": "publisher",
    "SendProgress": "progress",
    "SenderNames": "senders",
    "ShardReader": "sending_ports",
    "ShardResult": "tally",
    "encoded_values": "encoding",
    "for_structures": "record_size",
    "one_after_the_other": "encoding",
    "partitioned": "encoding",
    "structure_topic_config": "record_size",
    "timed_by_sending": "record_times",
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
