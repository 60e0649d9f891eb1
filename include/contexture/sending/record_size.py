"""What a structure publication needs of client and topics, so that its largest artefact fits.

Three limits are passed one after the other, and the lowest stops a record: the client compares key, value and headers
before compression with `message.max.bytes`; the topic compares them after compression with `max.message.bytes`; and no
request to a broker may be larger than its `socket.request.max.bytes`. What a connection or a publication says itself is
never overruled: it is the limit then.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from contexture.kafka.settings import ClientSettings, Option

LARGEST_RECORD_BYTES: Final = 209_715_200
"""Key, value and headers of the largest record of a structure publication, before compression (200 MiB)."""

# A record that does not compress travels with a header of its batch, and a codec may add a little.
_TOPIC_BYTES: Final = LARGEST_RECORD_BYTES + 1_048_576
# Room for a largest record beside those that wait to be delivered.
_QUEUE_SHARE: Final = 1.25
_KBYTE: Final = 1024

_TIMEOUT_MS: Final = 120_000
# Brokers allow no more by default (transaction.max.timeout.ms).
_LONGEST_TIMEOUT_MS: Final = 900_000
_SLOWEST_BYTES_A_SECOND: Final = 10_000_000


def for_structures(settings: ClientSettings, transaction_bytes: int = 0) -> ClientSettings:
    """The connection with room for the largest artefact, and time for the largest transaction.

    Args:
        settings: the connection; what it says itself stays.
        transaction_bytes: keys and values of the largest transaction. A transaction lives no longer than
            `transaction.timeout.ms`, and when its sender dies readers are held back that long: so only what needs more
            than two minutes at 10 MB/s gets more, up to the 15 minutes that brokers allow by default.
    """
    given = settings.options
    record_bytes = int(given.get("message.max.bytes", LARGEST_RECORD_BYTES))
    timeout_ms = max(_TIMEOUT_MS, min(_LONGEST_TIMEOUT_MS, transaction_bytes * 1000 // _SLOWEST_BYTES_A_SECOND))
    room: dict[str, Option] = {
        "message.max.bytes": record_bytes,
        "queue.buffering.max.kbytes": int(max(record_bytes, LARGEST_RECORD_BYTES) * _QUEUE_SHARE) // _KBYTE,
        "transaction.timeout.ms": timeout_ms,
    }
    return ClientSettings(MappingProxyType({**room, **given}))


def structure_topic_config(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a new topic with room for the largest artefact; the publication's own word wins."""
    return {"max.message.bytes": str(_TOPIC_BYTES), **config}
