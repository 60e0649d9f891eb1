"""Writing rows of a ledger outside of a send, each as the only living sender of its shard."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from contexture.errors import RetriableError
from contexture.kafka.clients import transactional_producer
from contexture.kafka.errors import FencedError
from contexture.kafka.failures import SendAgainError
from contexture.kafka.opening import open_session
from contexture.kafka.patience import Patience
from contexture.kafka.ports import OpenProducer
from contexture.kafka.session import Session
from contexture.kafka.settings import ClientSettings
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.senders import SenderNames
from contexture.sending.sending_ports import LedgerPort
from contexture.sending.takeover import Fencings, OwnRows

_LOG: Final = logging.getLogger(__name__)


def write_rows(
    settings: ClientSettings,
    names: SenderNames,
    ledger: LedgerPort,
    rows: Mapping[int, LedgerEntry],
    *,
    shards: int,
    patience: Patience | None = None,
    open_producer: OpenProducer = transactional_producer,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Fences every sender of these shards and writes what the ledger says of them; makes the ledger if need be.

    Raises:
        RetriableError: a row was not written; writing again does no harm.
        KafkaConfigurationError: this user may not.
        FencedError: a sender of a shard wrote a row meanwhile, or fenced this one four times in a row.
    """
    patience = patience or Patience(300.0)
    ledger.prepare(shards)
    for shard, entry in rows.items():
        own = OwnRows()
        fencings = Fencings(own, ledger, shard, _LOG.warning, sleep)
        own.found(fencings.row())
        own.writes(entry)
        is_written = False
        while not is_written:
            session = open_session(
                settings,
                names.transactional_id(shard),
                patience,
                ledger_topic=ledger.topic,
                open_producer=open_producer,
            )
            try:
                _write_row(session, ledger, shard, entry)
                is_written = True
            except FencedError as failure:
                fencings.look_into(failure)
            except SendAgainError as failure:
                raise RetriableError(
                    failure.error.message, next_step="start it again: writing the same rows again does no harm"
                ) from failure
            finally:
                session.close()


def _write_row(session: Session, ledger: LedgerPort, shard: int, entry: LedgerEntry) -> None:
    session.initialise()
    session.begin()
    session.produce_one(ledger.topic, key=ledger.key(shard), value=entry.to_json(), partition=shard)
    session.commit()
