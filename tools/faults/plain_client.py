"""The plain client: confluent-kafka's transactional producer, used as its documentation says; shares no code with ours.

It commits again what may be committed again, aborts what has to be aborted and does it again, and ends at a fatal
error. It is not killed: which of its transactions are in Kafka is known from what its calls returned.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from confluent_kafka import KafkaError, KafkaException, Producer

from contexture.sending.testing import MemoryShard, OutboxRow

_CALL_SECONDS = 30.0
_MOST_TRIES = 10
# Its rows come as slowly as those of Contexture's sender (`loads.PacedShard`).
_PACE_SECONDS = 0.01
_PACED_ROWS = 3

_SILENT = logging.getLogger("tools.faults.plain_client")
_SILENT.setLevel(logging.CRITICAL + 1)


@dataclass(slots=True)
class PlainEnding:
    """What a plain client says of its transactions.

    Attributes:
        committed: transactions whose commit returned well.
        uncertain: the transaction in which it met a fatal error: its outcome is unknown.
        error: that error, by Kafka's name.
    """

    committed: list[int] = field(default_factory=list)
    uncertain: int | None = None
    error: str | None = None


def send_plainly(
    settings: dict[str, str | int], transactional_id: str, shard: MemoryShard, gives_up: int | None = None
) -> PlainEnding:
    """Sends a shard, a transaction for each of its own.

    Args:
        settings: of the client.
        transactional_id: whose.
        shard: the rows.
        gives_up: the transaction that is aborted once, after half of its records, and then done again.
    """
    ending = PlainEnding()
    producer = Producer({**settings, "transactional.id": transactional_id}, logger=_SILENT)
    try:
        producer.init_transactions(_CALL_SECONDS)
        for number, rows in groupby(shard.rows, key=lambda row: row.transaction):
            ending.uncertain = number
            listed = list(rows)
            if number == gives_up:
                producer.begin_transaction()
                _produce(producer, listed[: len(listed) // 2 or 1])
                producer.flush(_CALL_SECONDS)
                producer.abort_transaction(_CALL_SECONDS)
            _send(producer, listed)
            ending.committed.append(number)
        ending.uncertain = None
    except KafkaException as failure:
        ending.error = failure.args[0].name()
    return ending


def _send(producer: Producer, rows: Sequence[OutboxRow]) -> None:
    for _ in range(_MOST_TRIES):
        try:
            producer.begin_transaction()
            _produce(producer, rows)
            _commit(producer)
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            if error.fatal() or not error.txn_requires_abort():
                raise
            producer.abort_transaction(_CALL_SECONDS)
        else:
            return
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "too many tries"))


def _commit(producer: Producer) -> None:
    for _ in range(_MOST_TRIES):
        try:
            producer.commit_transaction(_CALL_SECONDS)
        except KafkaException as failure:
            if not failure.args[0].retriable():
                raise
        else:
            return
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "too many tries"))


def _produce(producer: Producer, rows: Sequence[OutboxRow]) -> None:
    for number, row in enumerate(rows):
        if number % _PACED_ROWS == 0:
            producer.poll(_PACE_SECONDS)
        producer.produce(row.topic, row.value, row.key, headers=list(row.headers))
