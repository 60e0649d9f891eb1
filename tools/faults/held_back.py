"""`python -m tools.faults.held_back`: how long a dead sender's open transaction holds back read-committed consumers.

A sender is killed with its transaction open. Another producer's record comes to the same partition right after, and a
read-committed consumer waits for it: it sees nothing beyond an open transaction.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import Annotated

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table

from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.loads import context_load
from tools.faults.moments import Moment
from tools.faults.probe import Aim
from tools.faults.trial import Cell, Trial

_WAIT_SECONDS = 300.0


def held_back_seconds(kafka: EmbeddedKafka, number: int, timeout_ms: int, *, successor: bool) -> float:
    """Seconds from the death of a sender until a consumer gets a record that came after it.

    Args:
        kafka: a cluster of one broker.
        number: of the measure; topics are named by it.
        timeout_ms: `transaction.timeout.ms` of the sender.
        successor: another sender of the shard starts as soon as the first one is dead.
    """
    trial = Trial(Cell(number, "held back", Moment.BEFORE_COMMIT, 0), kafka.bootstrap_servers, timeout_ms=timeout_ms)
    (topic,) = trial.make_topics(1, partitions=1)
    shard = context_load([topic], outbox="one").shards[0]
    with closing(_reader(kafka)) as reader:
        with trial.sender(shard, Aim(Moment.BEFORE_COMMIT)) as sender:
            sender.held()
            end = reader.get_watermark_offsets(TopicPartition(topic, 0), 10.0)[1]
            sender.kill()
        died = time.monotonic()
        _others_record(kafka, topic)
        reader.assign([TopicPartition(topic, 0, 0)])
        if not successor:
            return _seconds_until_past(reader, end, died)
        with trial.sender(shard):
            return _seconds_until_past(reader, end, died)


def _seconds_until_past(reader: Consumer, end: int, since: float) -> float:
    while time.monotonic() - since < _WAIT_SECONDS:
        message = reader.poll(0.05)
        if message is not None and message.error() is None and int(message.offset() or 0) >= end:
            return time.monotonic() - since
    raise TimeoutError(f"a consumer is held back for more than {_WAIT_SECONDS:.0f} s")


def _others_record(kafka: EmbeddedKafka, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b"another's", b"other")
    producer.flush(10.0)


def _reader(kafka: EmbeddedKafka) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "held-back",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )


def main(
    timeout_seconds: Annotated[
        list[int] | None, typer.Option("--timeout", help="transaction.timeout.ms, in s.")
    ] = None,
) -> None:
    """Measures it, with and without a successor, on a broker with Kafka's own settings."""
    table = Table("transaction.timeout.ms", "no sender follows", "another sender starts at once")
    with EmbeddedKafka() as kafka:
        for number, seconds in enumerate(timeout_seconds or [5, 20, 120]):
            alone = held_back_seconds(kafka, 2 * number, seconds * 1000, successor=False)
            followed = held_back_seconds(kafka, 2 * number + 1, seconds * 1000, successor=True)
            table.add_row(f"{seconds} s", f"{alone:.1f} s", f"{followed:.1f} s")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
