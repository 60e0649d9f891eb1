"""Writing rows of a ledger outside of a send, each as the only living sender of its shard."""

from __future__ import annotations

from collections.abc import Mapping

from contexture.errors import RetriableError
from contexture.kafka.clients import transactional_producer
from contexture.kafka.failures import SendAgainError
from contexture.kafka.ledger_entry import LedgerEntry
from contexture.kafka.opening import open_session
from contexture.kafka.patience import Patience
from contexture.kafka.ports import LedgerPort, OpenProducer
from contexture.kafka.senders import SenderNames
from contexture.kafka.settings import ClientSettings


def write_rows(
    settings: ClientSettings,
    names: SenderNames,
    ledger: LedgerPort,
    rows: Mapping[int, LedgerEntry],
    *,
    shards: int,
    patience: Patience | None = None,
    open_producer: OpenProducer = transactional_producer,
) -> None:
    """Fences every sender of these shards and writes what the ledger says of them; makes the ledger if need be.

    Raises:
        RetriableError: a row was not written; writing again does no harm.
        KafkaConfigurationError: this user may not.
        FencedError: a sender of a shard began meanwhile.
    """
    patience = patience or Patience(300.0)
    ledger.prepare(shards)
    for shard, entry in rows.items():
        session = open_session(
            settings,
            names.transactional_id(shard),
            patience,
            ledger_topic=ledger.topic,
            open_producer=open_producer,
        )
        try:
            session.initialise()
            session.begin()
            session.produce_one(ledger.topic, key=ledger.key(shard), value=entry.to_json(), partition=shard)
            session.commit()
        except SendAgainError as failure:
            raise RetriableError(
                failure.error.message, next_step="start it again: writing the same rows again does no harm"
            ) from failure
        finally:
            session.close()
