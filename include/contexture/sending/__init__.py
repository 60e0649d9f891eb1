"""Sending exactly once: the publisher, the ledger that proves it, claims, dead letters, and what restores them.

Each name is loaded from its module when it is first requested: importing this package loads no Kafka client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.lazy_names import load_on_request

if TYPE_CHECKING:
    from contexture.sending.claims import Claims as Claims
    from contexture.sending.context import encoded_values as encoded_values
    from contexture.sending.context import one_after_the_other as one_after_the_other
    from contexture.sending.context import partitioned as partitioned
    from contexture.sending.context import timed_by_sending as timed_by_sending
    from contexture.sending.interfaces import ShardReader as ShardReader
    from contexture.sending.ledger import Ledger as Ledger
    from contexture.sending.ledger import LedgerEntry as LedgerEntry
    from contexture.sending.ledger import SenderNames as SenderNames
    from contexture.sending.publisher import Publisher as Publisher
    from contexture.sending.shard_sender import AfterFailure as AfterFailure
    from contexture.sending.size_limits import LARGEST_RECORD_BYTES as LARGEST_RECORD_BYTES
    from contexture.sending.size_limits import for_structures as for_structures
    from contexture.sending.size_limits import structure_topic_config as structure_topic_config
    from contexture.sending.transactions import ShardResult as ShardResult

__getattr__ = load_on_request(
    __name__,
    {
        "claims": "Claims",
        "context": "encoded_values one_after_the_other partitioned timed_by_sending",
        "interfaces": "ShardReader",
        "ledger": "Ledger LedgerEntry SenderNames",
        "publisher": "Publisher",
        "shard_sender": "AfterFailure",
        "size_limits": "LARGEST_RECORD_BYTES for_structures structure_topic_config",
        "transactions": "ShardResult",
    },
)
