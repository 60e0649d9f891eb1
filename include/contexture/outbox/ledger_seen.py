"""Which ledger in Kafka a publication has written to, so that a lost one is not taken for a new one."""

from __future__ import annotations

from contexture.outbox.document import Versioned
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.storage import Storage


class LedgerSeen(Versioned):
    """The ledger that the publication's senders write to.

    `cluster`: id of the Kafka cluster; on another one there may be none. `topic_id`: Kafka's own id of the topic.
    `written`: whether a shard was sent whole since, so that the ledger holds rows.
    """

    format: int = 1
    cluster: str | None
    topic_id: str
    written: bool = False


def ledger_seen(storage: Storage, publication: str) -> LedgerSeen | None:
    """What is known of a publication's ledger; None before its first send."""
    try:
        return LedgerSeen.from_file(storage, PublicationFolder(publication).ledger_seen())
    except FileNotFoundError:
        return None


def note_ledger(storage: Storage, publication: str, seen: LedgerSeen) -> None:
    """Keeps it."""
    storage.write(PublicationFolder(publication).ledger_seen(), seen.to_json())
