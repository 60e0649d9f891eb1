"""Everything that a ledger still holds, not only where each shard stands: for people, never for deciding."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.kafka.patience import Patience
from contexture.kafka.replica import read_committed
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.senders import SenderNames


def ledger_history(
    settings: ClientSettings, publication: str, *, timeout_seconds: float = 60.0
) -> Iterator[tuple[int, LedgerEntry]]:
    """Every committed row of a publication's ledgers with its shard, also of backfills; those of a shard in order.

    What compaction has taken is missing: of each shard at least the last row is there. Nothing where no run ever sent.

    Raises:
        KafkaConfigurationError: this user may not read them.
        BrokersAwayError: the brokers were silent for too long.
        DefectError: a record of a ledger is not a row of it.
    """
    names = (SenderNames(publication), SenderNames(publication, backfill="any"))
    listed = TopicAdmin(settings, Patience(timeout_seconds)).listed()
    there = [each.ledger_topic for each in names if each.ledger_topic in listed]
    for record in read_committed(settings, there, timeout_seconds=timeout_seconds) if there else ():
        if record.value is not None:
            yield record.partition, LedgerEntry.from_json(record.value)
