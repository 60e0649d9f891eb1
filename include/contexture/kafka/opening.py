"""Opening the session of a sender: a new client, with something that its callbacks report to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from contexture.kafka.clients import transactional_producer
from contexture.kafka.session import Session
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from contexture.kafka.delivered import Delivered
    from contexture.kafka.patience import Patience
    from contexture.kafka.ports import OpenProducer
    from contexture.kafka.settings import ClientSettings


def open_session(
    settings: ClientSettings,
    transactional_id: str,
    patience: Patience,
    *,
    ledger_topic: str,
    delivered: Delivered | None = None,
    open_producer: OpenProducer = transactional_producer,
    clock: Callable[[], float] = time.monotonic,
) -> Session:
    """A session that is not connected yet; who opens it closes it.

    Args:
        settings: the connection.
        transactional_id: only one living sender has it.
        patience: how long brokers are waited for.
        ledger_topic: where the transactions' last row goes.
        delivered: is told of each record that a broker has taken or not.
        open_producer, clock: for tests.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    watch = ClientWatch()
    watch.delivered = delivered
    return Session(
        open_producer(settings, transactional_id, watch),
        watch,
        patience,
        ledger_topic=ledger_topic,
        transaction_timeout_seconds=settings.transaction_timeout_seconds,
        clock=clock,
    )
