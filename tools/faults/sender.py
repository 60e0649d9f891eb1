"""A sender's own process: one call of `Publisher.publish` with a probe in it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from typing import Any

from contexture.errors import ContextureError
from contexture.kafka.clients import transactional_producer
from contexture.kafka.settings import ClientSettings
from contexture.sending.ledger import SenderNames
from contexture.sending.publisher import Publisher
from contexture.sending.resume import ExpectedRow
from contexture.sending.testing import MemoryShard, OutboxRow, record_batch
from tools.faults.probe import Aim, Probe, ProbedProducer

# What `batch_ttl` would allow: an abort that the brokers caused counts as a failed attempt.
_ATTEMPTS_MS = (200,) * 5

# Senders are here to be killed: what the client logs last is no news.
logging.getLogger("contexture.kafka.client").setLevel(logging.CRITICAL + 1)
# This module is imported once by the server that forks senders; what a first batch imports is then there too.
record_batch([OutboxRow("t", None, None)], 0)


@dataclass(frozen=True, slots=True)
class SendOrder:
    """What a sender sends.

    Attributes:
        client: the extra of the connection.
        publication: whose transactional ids and ledger.
        shard: the rows.
        shards: how many the outbox has.
        aim: where to hold; None for nowhere.
        wait_seconds: how long brokers are waited for.
        gives_up: where the sender's client says once that the transaction has to be aborted; None for nowhere.
        row: what is known of the ledger's row of the shard.
    """

    client: Mapping[str, str | int]
    publication: str
    shard: MemoryShard
    shards: int = 1
    aim: Aim | None = None
    wait_seconds: float = 60.0
    gives_up: Aim | None = None
    row: ExpectedRow = ExpectedRow.NONE


def send(order: SendOrder, pipe: Connection) -> None:
    """Sends, and reports how it ended: `done` with the result, or `failed` with the error's class and text."""
    probe = Probe(pipe, order.aim, order.gives_up)
    names = SenderNames(order.publication)

    def opened(*call: Any) -> Any:
        return ProbedProducer(transactional_producer(*call), probe, names.ledger_topic)

    publisher = Publisher(
        ClientSettings.from_extra(order.client),
        names,
        shards=order.shards,
        broker_wait_seconds=order.wait_seconds,
        progress=probe.progress,
        open_producer=opened,
    )
    try:
        result = publisher.publish(order.shard, attempts=_ATTEMPTS_MS, row=order.row)
    except ContextureError as error:
        probe.send("failed", type(error).__name__, str(error))
    else:
        probe.send("done", asdict(result))
